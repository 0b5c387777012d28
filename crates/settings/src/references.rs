//! Checks that what an agent names exists: its engine, its pool with servers, its program and its
//! members.

use super::error::SettingsError;
use super::implementation::Implementation as _;
use super::resolve::{Agent, DEPTH_MAX, RoleOptions};
use super::sections::Settings;
use prime_bench::spelling::nearest;
use prime_protocol::Role;

impl Settings {
    /// # Errors
    /// Names the first missing thing to which the agent or one of its members refers.
    pub(super) fn check_members<A: RoleOptions>(
        &self,
        agent: &Agent<A>,
        name: &str,
        place: &str,
        depth: usize,
    ) -> Result<(), SettingsError> {
        if depth > DEPTH_MAX {
            let message = format!(
                "`{name}` has agents nested more than {DEPTH_MAX} deep: does it contain itself?"
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(engine) = agent.engines().iter().find(|name| !self.engines.contains_key(*name))
        {
            return Err(unknown(
                place.to_owned(),
                "engine",
                engine,
                self.engines.keys().cloned().collect(),
            ));
        }
        if let Some(entry) = agent.adapters().and_then(|adapters| adapters.unknown_task()) {
            let known = prime_bench::tasks::all().map(|task| task.spec().slug.to_owned());
            return Err(unknown(place.to_owned(), "task in `adapters`", entry, known.collect()));
        }
        if agent.program().is_some_and(|program| program.command.is_empty()) {
            let message = format!(
                "`{name}` is a program, but `program.command` is empty; set it to the program and \
                 its arguments, such as [\"python3\", \"agents/examples/{}.py\"]",
                A::ROLE
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        if let Some(pool) = agent.pool() {
            if self.pools.is_empty() {
                let message = format!(
                    "`{name}` uses the server pool `{pool}`, but no pool is configured: add \
                     [[pools.NAME.upstreams]] with url and model, and set `pool` to NAME"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
            let Some(servers) = self.pools.get(pool) else {
                return Err(unknown(
                    place.to_owned(),
                    "pool",
                    pool,
                    self.pools.keys().cloned().collect(),
                ));
            };
            if servers.upstreams.is_empty() {
                let message = format!(
                    "`pools.{pool}` has no servers; add them as `[[pools.{pool}.upstreams]]` with \
                     url and model"
                );
                return Err(SettingsError::Conflict { origin: place.to_owned(), message });
            }
        }
        let members = agent.members();
        // Opinions of verifiers are told apart by the names of these.
        let again = |(index, name): &(usize, &&str)| members[..*index].contains(*name);
        if A::ROLE == Role::Verifier
            && let Some((_, again)) = members.iter().enumerate().find(again)
        {
            let message = format!(
                "`{name}` has two members called `{again}`: leave one out, or define it under \
                 another name in agents/verifier"
            );
            return Err(SettingsError::Conflict { origin: place.to_owned(), message });
        }
        for member in members {
            let Some(below) = self.agent::<A>(member) else {
                return Err(unknown(
                    place.to_owned(),
                    agent.implementation.name(),
                    member,
                    self.agent_names(A::ROLE),
                ));
            };
            self.check_members(&below, member, place, depth + 1)?;
        }
        Ok(())
    }
}

pub(super) fn unknown(origin: String, key: &str, found: &str, known: Vec<String>) -> SettingsError {
    let nearest = nearest(found, known.iter().map(String::as_str)).map(Into::into);
    SettingsError::UnknownName {
        key: key.to_owned(),
        origin,
        found: found.to_owned(),
        nearest,
        known,
    }
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    fn load(sets: &[&str]) -> Result<(), String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&[], std::iter::empty(), &sets).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_ensemble_has_no_member_twice() {
        let ensemble = "agents.verifier.implementation=ensemble";
        let twice =
            load(&[ensemble, r#"agents.verifier.ensemble.members=["none","rules","none"]"#]);
        let twice = twice.unwrap_err();
        assert!(twice.contains("`ensemble` has two members called `none`"), "{twice}");
        assert_eq!(
            load(&[ensemble, r#"agents.verifier.ensemble.members=["none","rules"]"#]),
            Ok(())
        );
        // Nobody asks the ensemble of the section here.
        assert_eq!(load(&[r#"agents.verifier.ensemble.members=["none","none"]"#]), Ok(()));
    }

    #[test]
    fn the_other_agent_of_a_comparison_has_what_it_needs() {
        for role in ["executor", "verifier", "coordinator"] {
            let role = format!("agents.split.role={role}");
            let split = [role.as_str(), "agents.split.other=process", "agents.split.share=0.5"];
            let refusal = load(&split).unwrap_err();
            assert!(refusal.contains("agents.split.other"), "{refusal}");
            assert!(refusal.contains("`program.command` is empty"), "{refusal}");
        }
    }
}
