//! Turns a record back into settings that name exactly its agents, if this process has what they
//! need.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{RecordedAgent, RecordedAgents, RecordedPool, RecordedRole, VERSION, file_digest};
use crate::pools::Environment;
use crate::prompt::Templates;
use prime_protocol::Role;
use prime_settings::{
    Agent, BUILT_IN, CoordinatorAgent, Defined, ExecutorAgent, Implementation as _, RoleOptions,
    Settings, Template, VerifierAgent, default_section,
};

/// Why the agents of a record cannot be built now, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentMissing {
    /// The record has a newer form than this version reads; with that form's number.
    #[error(
        "the agents were recorded in form {0}, which this version cannot read: start a newer \
         version"
    )]
    Version(u32),
    /// An agent lacks something here, or it has changed.
    #[error("{role} `{name}`: {reason}")]
    Agent {
        /// Role of the agent.
        role: Role,
        /// Name of the agent.
        name: String,
        /// What is missing or has changed, and what to do.
        reason: String,
    },
    /// The settings that the record gives are invalid, in words.
    #[error("{0}")]
    Unusable(String),
}

/// The digest as a condition on a model.
fn with_digest(digest: Option<&String>) -> String {
    digest.map_or_else(String::new, |digest| format!(" with the model whose SHA-256 is {digest}"))
}

impl RecordedAgents {
    /// The present settings with the recorded agents, templates and thresholds in place of the
    /// configured ones.
    ///
    /// # Errors
    /// The first agent whose engine, pool, program or recording is missing here or has changed.
    pub fn restore(
        &self,
        present: &Settings,
        environment: &Environment,
    ) -> Result<Settings, AgentMissing> {
        let settings = self.settings_in(present)?;
        let mut missing = None;
        settings.walk_configured::<ExecutorAgent>(&mut |name, agent| {
            self.check(name, agent, &settings, environment, &mut missing);
        });
        self.check_recordings(&mut missing);
        settings.walk_configured::<VerifierAgent>(&mut |name, agent| {
            self.check(name, agent, &settings, environment, &mut missing);
        });
        settings.walk_configured::<CoordinatorAgent>(&mut |name, agent| {
            self.check(name, agent, &settings, environment, &mut missing);
        });
        settings.walk_locator(&mut |name, agent| {
            self.check(name, agent, &settings, environment, &mut missing);
        });
        missing.map_or(Ok(settings), Err)
    }

    /// Like [`Self::restore`], whether or not the agents can be built here.
    pub(super) fn settings_in(&self, present: &Settings) -> Result<Settings, AgentMissing> {
        if self.version > VERSION {
            return Err(AgentMissing::Version(self.version));
        }

        let mut settings = present.clone();
        let (agents, definitions) = (&mut settings.agents, &mut settings.definitions);
        restore(&self.executor, &mut agents.executor, &mut definitions.executors)?;
        restore(&self.verifiers(), &mut agents.verifier, &mut definitions.verifiers)?;
        restore(&self.coordinator, &mut agents.coordinator, &mut definitions.coordinators)?;

        // An A/B test or a preset plays no part in a run that was accepted.
        agents.split.other.clear();
        settings.presets.clear();

        let run = &mut settings.run;
        (run.tau_soft, run.tau_hard) = (self.thresholds.tau_soft, self.thresholds.tau_hard);
        run.retries_max = self.thresholds.retries_max;
        run.locate = self.locator.as_ref().map_or_else(String::new, |role| role.name.clone());

        // Built-in templates were checked by a test, others are rendered for every task before a
        // run: an unchanged text keeps its origin to avoid that.
        let built_in = Templates::default();
        for (name, text) in &self.templates {
            let is_built_in = built_in.source(name).as_ref() == Some(text);
            let origin = if is_built_in { BUILT_IN } else { "the run's record" };
            definitions
                .templates
                .insert(name.clone(), Template { text: text.clone(), origin: origin.to_owned() });
        }

        Ok(settings)
    }

    /// The verifier and the locator as one role: agents with the name of an implementation have
    /// their options from one section.
    fn verifiers(&self) -> RecordedRole {
        let mut all = self.verifier.clone();
        if let Some(locator) = &self.locator {
            let others = locator.agents.iter().map(|(name, agent)| (name.clone(), agent.clone()));
            all.agents.extend(others);
        }
        all
    }

    /// Checks that what an agent needs is configured, unless something is missing already. Whether
    /// an engine has the recorded model is checked where the engine is started.
    fn check<O: RoleOptions>(
        &self,
        name: &str,
        agent: &Agent<O>,
        settings: &Settings,
        environment: &Environment,
        missing: &mut Option<AgentMissing>,
    ) {
        let command = agent.program().map(|program| &program.command[..]);
        let reason = (self.missing_engine(agent.engines(), settings))
            .or_else(|| self.missing_pool(agent.pool(), settings))
            .or_else(|| missing_program(command, environment));
        if let (None, Some(reason)) = (&missing, reason) {
            *missing = Some(AgentMissing::Agent { role: O::ROLE, name: name.to_owned(), reason });
        }
    }

    /// Checks that the recordings are there and have not changed. Only executors replay.
    fn check_recordings(&self, missing: &mut Option<AgentMissing>) {
        let agents = self.executor.agents.iter();
        for (name, path) in agents.filter_map(|(name, agent)| Some((name, agent.recording()?))) {
            let is_known =
                |digest: &String| self.recordings.get(path).is_none_or(|known| known == digest);
            let reason = match file_digest(Path::new(path)) {
                Ok(digest) if is_known(&digest) => continue,
                Ok(_) => format!(
                    "recording {path} has changed; put the one back that the run was accepted with"
                ),
                Err(error) => format!("recording {path} cannot be read: {error}"),
            };
            missing.get_or_insert(AgentMissing::Agent {
                role: Role::Executor,
                name: name.clone(),
                reason,
            });
        }
    }

    fn missing_engine(&self, engines: &[String], settings: &Settings) -> Option<String> {
        let engine = engines.iter().find(|name| !settings.engines.contains_key(*name))?;
        let digest = self.engines.get(engine).and_then(Option::as_ref);
        Some(format!(
            "engine `{engine}` is not configured; add [engines.{engine}]{}",
            with_digest(digest)
        ))
    }

    fn missing_pool(&self, pool: Option<&str>, settings: &Settings) -> Option<String> {
        let pool = pool?;
        let recorded = self.pools.get(pool)?;
        let models = recorded.models.join(", ");
        let Some(present) = settings.pools.get(pool) else {
            return Some(format!(
                "pool `{pool}` is not configured; add [pools.{pool}] with servers of {models}"
            ));
        };

        let present = RecordedPool::of(present);
        if present == *recorded {
            return None;
        }

        let was = if present.models == recorded.models { "other options" } else { models.as_str() };
        Some(format!(
            "pool `{pool}` has changed: the run was accepted with {was}; restore [pools.{pool}]"
        ))
    }

    /// The error of the agent that uses an engine whose model is not the recorded one.
    pub fn other_model(&self, engine: &str, found: Option<&str>) -> AgentMissing {
        let digest = self.engines.get(engine).and_then(Option::as_ref);
        let found = found.map_or_else(String::new, |found| format!(", whose SHA-256 is {found}"));
        let reason = format!(
            "engine `{engine}` has another model{found}; configure [engines.{engine}]{}",
            with_digest(digest)
        );
        self.engine_missing(engine, reason)
    }

    /// The error of the agent that uses this engine, which cannot be used for this reason.
    pub fn engine_missing(&self, engine: &str, reason: String) -> AgentMissing {
        let mut agents = self.roles().flat_map(|(role, recorded)| {
            let uses = move |agent: &RecordedAgent| agent.engines(role).contains(&engine);
            let users = recorded.agents.iter().filter(move |(_, agent)| uses(agent));
            users.map(move |(name, _)| (role, name.clone()))
        });

        match agents.next() {
            Some((role, name)) => AgentMissing::Agent { role, name, reason },
            None => AgentMissing::Unusable(reason),
        }
    }
}

/// Why a program cannot be started, if that shows before it is tried.
pub(super) fn missing_program(
    command: Option<&[String]>,
    environment: &Environment,
) -> Option<String> {
    let program = command?.first()?;
    // The same search as that of `execvp`.
    let is_there = if program.contains('/') {
        Path::new(program).is_file()
    } else {
        let path = environment("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    (!is_there).then(|| {
        format!("its program {program} does not exist; install it where the configuration says")
    })
}

/// Writes the agents of a role into its section and its definitions.
fn restore<O: RoleOptions + DeserializeOwned>(
    recorded: &RecordedRole,
    section: &mut O,
    definitions: &mut BTreeMap<String, Defined<O>>,
) -> Result<(), AgentMissing> {
    let missing = |name: &str, reason: String| AgentMissing::Agent {
        role: O::ROLE,
        name: name.to_owned(),
        reason,
    };
    let is_known = |name: &str| O::Implementation::find(name).is_some();
    // An option that the record does not have came later: it has its default, not what is
    // configured now.
    let base = default_section(O::ROLE);

    // Agents with the name of an implementation have their options from the section, all from the
    // same one.
    let mut own = base.clone();
    for (name, agent) in &recorded.agents {
        if !is_known(&agent.implementation) {
            let reason = format!("this version has no implementation `{}`", agent.implementation);
            return Err(missing(name, reason));
        }

        let mut options = if is_known(name) { std::mem::take(&mut own) } else { base.clone() };
        merge(&mut options, &agent.options);
        if is_known(name) {
            own = options;
            continue;
        }

        let mut options: O = read(options).map_err(|reason| missing(name, reason))?;
        options.set_implementation(&agent.implementation);
        let defined = Defined { options, origin: "the run's record".to_owned(), given: Vec::new() };
        definitions.insert(name.clone(), defined);
    }

    *section = read(own).map_err(|reason| missing(&recorded.name, reason))?;
    section.set_implementation(&recorded.name);
    Ok(())
}

fn read<O: DeserializeOwned>(options: Map<String, Value>) -> Result<O, String> {
    serde_json::from_value(Value::Object(options))
        .map_err(|error| format!("this version cannot read its options: {error}"))
}

/// Overwrites the values of a table with those of another, recursively in tables, so that an option
/// that came later keeps its default at every depth.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}
