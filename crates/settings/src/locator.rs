//! The locator, `run.locate`: a verifier that says where the fault of a refuted trajectory lies.

use config::Value;

use super::agents::VerifierAgent;
use super::error::SettingsError;
use super::implementation::VerifierImplementation;
use super::load::origin_of;
use super::references::unknown;
use super::resolve::Agent;
use super::sections::Settings;
use prime_protocol::Role;

impl Settings {
    /// The name of the locator. `None` without one, and where it is the verifier itself, which
    /// cannot find more.
    #[must_use]
    pub fn locator(&self) -> Option<&str> {
        let name = self.run.locate.as_str();
        (!name.is_empty() && name != self.agents.verifier.implementation).then_some(name)
    }

    /// Visits the locator and its parts, each with its name.
    pub fn walk_locator(&self, visit: &mut dyn FnMut(&str, &Agent<VerifierAgent>)) {
        if let Some(name) = self.locator() {
            self.walk::<VerifierAgent>(name, visit);
        }
    }

    /// Checks that the locator is a verifier that can find more than the configured one.
    pub(super) fn check_locator(&self, origins: &Value) -> Result<(), SettingsError> {
        let name = &self.run.locate;
        if name.is_empty() {
            return Ok(());
        }

        let origin = || origin_of(origins, &["run", "locate"]);
        let conflict = |message| Err(SettingsError::Conflict { origin: origin(), message });
        let Some(agent) = self.agent::<VerifierAgent>(name) else {
            let has = |role: &Role| self.agent_names(*role).contains(name);
            if let Some(role) = [Role::Executor, Role::Coordinator].iter().find(|role| has(role)) {
                return conflict(format!(
                    "`run.locate` is \"{name}\", which is an agent of the role {role}, but only a \
                     verifier can say which step is wrong; `prime-agents agents list` shows the \
                     verifiers"
                ));
            }
            let verifiers = self.agent_names(Role::Verifier);
            return Err(unknown(origin(), "run.locate", name, verifiers));
        };

        if *name == self.agents.verifier.implementation {
            return conflict(format!(
                "`run.locate` is \"{name}\", which is the verifier itself: it has found these \
                 steps clean and cannot find more. Name a stronger verifier, or set it to \"\""
            ));
        }
        if agent.implementation == VerifierImplementation::None {
            return conflict(format!(
                "`run.locate` is \"{name}\", which looks at no step and finds nothing. Name a \
                 stronger verifier, or set it to \"\""
            ));
        }
        // A definition has been checked with its role; an implementation takes the section's
        // options, whatever the section names.
        self.check_members(&agent, name, &origin(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(sets: &[&str]) -> Result<Settings, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&[], std::iter::empty(), &sets).map_err(|error| error.to_string())
    }

    #[test]
    fn a_locator_is_a_verifier_that_can_find_more() {
        let settings = load(&["run.locate=strict"]).unwrap();
        assert_eq!(settings.locator(), Some("strict"));
        assert_eq!(load(&[]).unwrap().locator(), None);

        for (locate, parts) in [
            ("strictt", ["did you mean `strict`", "run.locate"]),
            ("uniform", ["which is an agent of the role executor", "only a verifier"]),
            ("threshold", ["which is an agent of the role coordinator", "only a verifier"]),
            ("rules", ["which is the verifier itself", "cannot find more"]),
            ("none", ["looks at no step", "stronger verifier"]),
            ("openai", ["no pool is configured", "`openai`"]),
        ] {
            let error = load(&[&format!("run.locate={locate}")]).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert!(error.contains("--set"), "it says where the value was set: {error}");
        }
    }

    #[test]
    fn a_run_whose_verifier_is_the_locator_has_none() {
        let mut settings = load(&["run.locate=strict"]).unwrap();
        "strict".clone_into(&mut settings.agents.verifier.implementation);
        assert_eq!(settings.locator(), None);
    }

    #[test]
    fn the_engine_of_a_locator_is_needed() {
        let settings =
            load(&["agents.executor.implementation=reference", "run.locate=llama"]).unwrap();
        let named = settings.agents.verifier.engine.all().to_vec();
        assert_eq!(settings.engines_needed(), named);
        assert_ne!(
            settings.hash(),
            load(&["agents.executor.implementation=reference"]).unwrap().hash()
        );
    }
}
