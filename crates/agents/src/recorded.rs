//! The agents of a run as data: what a later process needs to build the same ones, and to notice
//! that it cannot. Engines and pools are named, not contained: they belong to the process.

mod for_task;
mod needs;
mod prompts;
mod restore;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Names;
use super::llm::from_settings;
use super::prompt::Templates;
use super::registry::Resources;
use prime_engine::gguf::{open_regular, part_paths};
use prime_protocol::Role;
use prime_roles::CardQuote;
use prime_settings::{
    Agent, Api, CoordinatorAgent, Dialect, ExecutorAgent, Implementation as _, RoleOptions,
    Settings, UpstreamPool, VerifierAgent,
};

pub use needs::{engine_need, needs_met};
pub use prompts::RecordedPrompts;
pub use restore::AgentMissing;

/// The version of the form of [`RecordedAgents`]. A process that knows only earlier ones leaves the
/// run waiting.
const VERSION: u32 = 2;

/// The version of records without a locator, which earlier processes can read.
const WITHOUT_LOCATOR: u32 = 1;

/// The agents of a run, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAgents {
    /// Version of the form of this record.
    pub version: u32,
    /// The executor.
    pub executor: RecordedRole,
    /// The verifier.
    pub verifier: RecordedRole,
    /// The coordinator.
    pub coordinator: RecordedRole,
    /// The verifier that says where the fault of a refuted trajectory lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locator: Option<RecordedRole>,
    /// The thresholds that coordinators follow.
    pub thresholds: RecordedThresholds,
    /// What results quote of the verifier's card, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardQuote>,
    /// The texts of the prompt templates, and of those that they import, by `role/file`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, String>,
    /// The SHA-256 of each engine's model file, by engine; null if it was not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engines: BTreeMap<String, Option<String>>,
    /// The SHA-256 of each adapter's file, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: BTreeMap<String, String>,
    /// The pools that agents ask, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, RecordedPool>,
    /// The SHA-256 of each recording that is replayed, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recordings: BTreeMap<String, String>,
}

/// The agent of a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedRole {
    /// Name of the agent that has the role.
    pub name: String,
    /// The agent and those that it is composed of, by name.
    pub agents: BTreeMap<String, RecordedAgent>,
}

/// An implementation with the options that it uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAgent {
    /// Name of the implementation.
    pub implementation: String,
    /// The options that the implementation uses, defaults included.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// The thresholds that coordinators take from section `run`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedThresholds {
    /// τ_soft: the score up to which a step is tolerated after its last retry.
    pub tau_soft: f64,
    /// τ_hard: the score above which a step backtracks at once.
    pub tau_hard: f64,
    /// Maximum number of retries in one state.
    pub retries_max: u32,
}

/// The properties of a pool that determine its answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedPool {
    /// The API that is used, such as chat completions.
    pub api: Api,
    /// The kind of server.
    pub dialect: Dialect,
    /// Additional fields of requests, as JSON text.
    pub extra: String,
    /// The models of its servers, sorted, each once.
    pub models: Vec<String>,
}

impl RecordedPool {
    fn of(pool: &UpstreamPool) -> Self {
        let mut models: Vec<_> = pool.upstreams.iter().map(|server| server.model.clone()).collect();
        models.sort();
        models.dedup();
        Self { api: pool.api, dialect: pool.dialect, extra: pool.extra.clone(), models }
    }
}

impl RecordedRole {
    /// The configured agent.
    fn of<O: RoleOptions>(settings: &Settings) -> Self {
        let mut agents = BTreeMap::new();
        settings.walk_configured::<O>(&mut |name, agent| {
            agents.insert(name.to_owned(), RecordedAgent::of(agent));
        });
        Self { name: O::section(settings).implementation_name().to_owned(), agents }
    }

    fn of_locator(settings: &Settings) -> Option<Self> {
        let mut agents = BTreeMap::new();
        settings.walk_locator(&mut |name, agent| {
            agents.insert(name.to_owned(), RecordedAgent::of(agent));
        });
        settings.locator().map(|name| Self { name: name.to_owned(), agents })
    }
}

impl RecordedAgent {
    /// The agent with those of its options that its implementation uses.
    pub fn of<O: RoleOptions>(agent: &Agent<O>) -> Self {
        let implementation = agent.implementation.info();
        let all = serde_json::to_value(&agent.options).expect("invariant: options serialise");

        // A card describes the agent and changes none of its answers.
        let used = implementation.options.iter().filter(|key| **key != "card");
        let value = |key: &&str| all.get(*key).map(|value| ((*key).to_owned(), value.clone()));
        Self {
            implementation: implementation.name.to_owned(),
            options: used.filter_map(value).collect(),
        }
    }

    /// The file that it replays, if it replays a recording.
    fn recording(&self) -> Option<&str> {
        let path = self.options.get("recording").and_then(Value::as_str);
        path.filter(|path| !path.is_empty())
    }
}

/// The SHA-256 of a file in hex.
///
/// # Errors
/// The file cannot be read.
pub fn file_digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut open_regular(path)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// SHA-256 of a model's file or, if it is split, of the contents of all its parts in order.
///
/// # Errors
/// A file cannot be read.
pub fn model_digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for part in part_paths(path) {
        io::copy(&mut open_regular(&part)?, &mut hash)?;
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// The texts of the wanted templates and of all whose names occur in them. A template whose name
/// another one computes is missed.
fn with_imports(all: &Templates, wanted: impl Iterator<Item = String>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut wanted: Vec<_> = wanted.collect();

    // Templates may import each other in a circle: each text is visited once.
    while let Some(name) = wanted.pop() {
        let Some(text) = all.source(&name).filter(|_| !texts.contains_key(&name)) else { continue };
        wanted.extend(
            all.names().into_iter().filter(|other| text.contains(other)).map(str::to_owned),
        );
        texts.insert(name, text);
    }

    texts
}

impl RecordedAgents {
    /// Describes the configured agents. `None` if their templates or recordings cannot be read, in
    /// which case they cannot be built either.
    pub fn of(settings: &Settings, resources: &Resources) -> Option<Self> {
        let run = &settings.run;
        let locator = RecordedRole::of_locator(settings);
        let mut recorded = Self {
            version: if locator.is_some() { VERSION } else { WITHOUT_LOCATOR },
            executor: RecordedRole::of::<ExecutorAgent>(settings),
            verifier: RecordedRole::of::<VerifierAgent>(settings),
            coordinator: RecordedRole::of::<CoordinatorAgent>(settings),
            locator,
            thresholds: RecordedThresholds {
                tau_soft: run.tau_soft,
                tau_hard: run.tau_hard,
                retries_max: run.retries_max,
            },
            card: None,
            templates: BTreeMap::new(),
            engines: BTreeMap::new(),
            adapters: BTreeMap::new(),
            pools: BTreeMap::new(),
            recordings: BTreeMap::new(),
        };

        let mut wanted = Vec::new();
        settings.walk_configured::<ExecutorAgent>(&mut |_, agent| {
            recorded.add_resources(agent, settings, resources, &mut wanted);
        });
        settings.walk_configured::<VerifierAgent>(&mut |_, agent| {
            recorded.add_resources(agent, settings, resources, &mut wanted);
        });
        settings.walk_configured::<CoordinatorAgent>(&mut |_, agent| {
            recorded.add_resources(agent, settings, resources, &mut wanted);
        });
        settings.walk_locator(&mut |_, agent| {
            recorded.add_resources(agent, settings, resources, &mut wanted);
        });

        if !wanted.is_empty() {
            recorded.templates =
                with_imports(&from_settings::templates(settings).ok()?, wanted.into_iter());
        }

        // Only executors replay.
        for agent in recorded.executor.agents.values() {
            if let Some(path) = agent.recording() {
                recorded.recordings.insert(path.to_owned(), file_digest(Path::new(path)).ok()?);
            }
        }

        Some(recorded)
    }

    fn add_resources<O: RoleOptions>(
        &mut self,
        agent: &Agent<O>,
        settings: &Settings,
        resources: &Resources,
        templates: &mut Vec<String>,
    ) {
        templates.extend(agent.templates());

        for name in agent.engines() {
            self.engines.insert(name.to_owned(), resources.model_digests.get(name).cloned());
        }
        // Servers keep their own adapters.
        if let Some(adapters) = agent.adapters().filter(|_| agent.pool().is_none()) {
            for path in adapters.all().into_iter().flatten() {
                // An adapter that cannot be read cannot be built with.
                let read = resources.adapter(path, 1.0).ok().and_then(|adapter| adapter.digest);
                self.adapters.extend(read.map(|digest| (path.to_owned(), digest)));
            }
        }
        if let Some((name, pool)) =
            agent.pool().and_then(|name| Some((name, settings.pools.get(name)?)))
        {
            self.pools.insert(name.to_owned(), RecordedPool::of(pool));
        }
    }

    /// The agents of all roles, and the locator, which is a verifier.
    fn roles(&self) -> impl Iterator<Item = (Role, &RecordedRole)> {
        let configured = [
            (Role::Executor, &self.executor),
            (Role::Verifier, &self.verifier),
            (Role::Coordinator, &self.coordinator),
        ];
        configured.into_iter().chain(self.locator.iter().map(|role| (Role::Verifier, role)))
    }

    /// The models that the verifier asks: engines, each with the SHA-256 of its model's file if
    /// that is known, and models on servers, without a digest.
    pub fn of_verifier(&self) -> BTreeMap<String, Option<String>> {
        let mut models = BTreeMap::new();
        for agent in self.verifier.agents.values() {
            for engine in agent.engines(Role::Verifier) {
                models.insert(engine.to_owned(), self.engines.get(engine).cloned().flatten());
            }
            let pool = agent.options.get("pool").and_then(Value::as_str);
            if let Some(pool) = pool.and_then(|name| self.pools.get(name)) {
                models.extend(pool.models.iter().map(|model| (model.clone(), None)));
            }
        }
        models
    }

    /// The names of the agents, for results.
    pub fn names(&self) -> Names {
        Names {
            executor: self.executor.name.clone(),
            verifier: self.verifier.name.clone(),
            coordinator: self.coordinator.name.clone(),
            locator: self.locator.as_ref().map(|locator| locator.name.clone()),
        }
    }
}
