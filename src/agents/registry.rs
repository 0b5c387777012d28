//! From names in the configuration to agents. Each agent comes from a factory, because one that dies is replaced; what
//! is dear (an engine, a pool of servers or programs) is made once and shared by all that a factory makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reference::ReferenceExecutor;
use super::replay::ReplayExecutor;
use super::rules::RulesVerifier;
use super::scripted::ScriptedExecutor;
use super::threshold::ThresholdCoordinator;
use super::{Coordinator, Executor, Verifier};
use crate::engine::Engine;
use crate::protocol::{Role, Score, Thresholds};
use crate::settings::{CoordinatorAgent, ExecutorAgent, RoleOptions, Settings, VerifierAgent};
use crate::tasks::Kinds;

/// Which agents a run used, by the names in the configuration; part of every result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Names {
    pub executor: String,
    pub verifier: String,
    pub coordinator: String,
}

impl Names {
    /// The agents that the settings name.
    pub fn of(settings: &Settings) -> Self {
        let agents = &settings.agents;
        Self {
            executor: agents.executor.implementation.clone(),
            verifier: agents.verifier.implementation.clone(),
            coordinator: agents.coordinator.implementation.clone(),
        }
    }
}

/// Remarks on agents that know a task's algorithm, or are no models, also where they are part of others.
fn notes(settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    settings.walk_configured::<ExecutorAgent>(&mut |name, options| {
        let note = match options.implementation() {
            "reference" => "is the task's own algorithm, not a model",
            "scripted" => "is the task's own algorithm with injected errors, not a model",
            "replay" => "proposes given lines, it is no model",
            _ => return,
        };
        notes.push(format!("executor `{name}` {note}"));
    });
    settings.walk_configured::<VerifierAgent>(&mut |name, options| {
        if options.implementation() == "reference" {
            notes.push(format!(
                "verifier `{name}` knows the task's algorithm: for training and evaluation, never for claims about a model"
            ));
        }
    });
    notes
}

/// Makes agents of a role, as often as needed.
pub type Factory<A> = Arc<dyn Fn() -> Arc<A> + Send + Sync>;

/// Looks up a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What agents are made with, beside their options.
#[derive(Clone)]
pub struct Resources {
    /// The engines that were started, by name.
    pub engines: BTreeMap<String, Engine>,
    /// Keys of servers are there, and nowhere else.
    pub environment: Environment,
}

impl Default for Resources {
    /// No engine, and an empty environment.
    fn default() -> Self {
        Self { engines: BTreeMap::new(), environment: Arc::new(|_| None) }
    }
}

/// The three agents of every ring, as factories.
pub struct AgentSet {
    names: Names,
    notes: Vec<String>,
    kinds: Kinds,
    needs_algorithm: bool,
    executor: Factory<dyn Executor>,
    verifier: Factory<dyn Verifier>,
    coordinator: Factory<dyn Coordinator>,
}

/// A configuration that names agents which cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("agents.{role}.implementation: there is no {name:?}")]
    Unknown { role: Role, name: String },
    #[error("{role} `{name}`: {reason}")]
    Unusable { role: Role, name: String, reason: String },
}

/// Makes a factory from an agent's options.
struct Maker<'a> {
    settings: &'a Settings,
    resources: &'a Resources,
    role: Role,
    /// The agent's name in the configuration.
    name: &'a str,
}

impl Maker<'_> {
    fn unusable(&self, reason: impl Into<String>) -> RegistryError {
        RegistryError::Unusable { role: self.role, name: self.name.to_owned(), reason: reason.into() }
    }

    fn engine(&self, name: &str) -> Result<Engine, RegistryError> {
        let found = self.resources.engines.get(name).cloned();
        found.ok_or_else(|| {
            self.unusable(format!(
                "needs the engine `{name}`, which the configuration has not started: no agent of its own asks it"
            ))
        })
    }
}

type Made<A> = Result<Factory<A>, RegistryError>;
type Constructor<O, A> = fn(&Maker<'_>, &O) -> Made<A>;

/// A role whose implementations are constructed by name.
trait Constructed: RoleOptions + 'static {
    type Agent: ?Sized + 'static;
    const CONSTRUCTORS: &'static [(&'static str, Constructor<Self, Self::Agent>)];
}

impl Constructed for ExecutorAgent {
    type Agent = dyn Executor;
    const CONSTRUCTORS: &'static [(&'static str, Constructor<Self, dyn Executor>)] = &[
        ("llama", |maker, options| {
            let (engine, max_tokens) = (maker.engine(&options.engine)?, options.max_tokens);
            Ok(Arc::new(move || Arc::new(super::llama::LlamaExecutor::new(engine.clone(), max_tokens))))
        }),
        ("reference", |_, _| Ok(Arc::new(|| Arc::new(ReferenceExecutor)))),
        ("scripted", |_, options| {
            let error_rate = options.error_rate;
            Ok(Arc::new(move || Arc::new(ScriptedExecutor::new(error_rate))))
        }),
        ("replay", |maker, options| {
            let lines = options.lines.clone();
            if lines.is_empty() {
                return Err(maker.unusable("needs lines to propose: set agents.executor.lines"));
            }
            Ok(Arc::new(move || Arc::new(ReplayExecutor::new(lines.clone()))))
        }),
    ];
}

impl Constructed for VerifierAgent {
    type Agent = dyn Verifier;
    const CONSTRUCTORS: &'static [(&'static str, Constructor<Self, dyn Verifier>)] = &[
        ("rules", |_, options| {
            let kinds: Kinds = options.kinds.iter().copied().collect();
            Ok(Arc::new(move || Arc::new(RulesVerifier::new(kinds))))
        }),
        ("none", |_, _| Ok(Arc::new(|| Arc::new(RulesVerifier::new(Kinds::NONE))))),
    ];
}

impl Constructed for CoordinatorAgent {
    type Agent = dyn Coordinator;
    const CONSTRUCTORS: &'static [(&'static str, Constructor<Self, dyn Coordinator>)] = &[("threshold", |maker, _| {
        let thresholds = thresholds(maker.settings);
        Ok(Arc::new(move || Arc::new(ThresholdCoordinator(thresholds))))
    })];
}

/// The thresholds that the settings give.
fn thresholds(settings: &Settings) -> Thresholds {
    let score = |tau| Score::from_value(tau).expect("invariant: settings are validated");
    let run = &settings.run;
    Thresholds { soft: score(run.tau_soft), hard: score(run.tau_hard), retries_max: run.retries_max }
}

/// A factory for the agent of this name.
fn factory<O: Constructed>(settings: &Settings, resources: &Resources, name: &str) -> Made<O::Agent> {
    let unknown = || RegistryError::Unknown { role: O::ROLE, name: name.to_owned() };
    let options: O = settings.agent(name).ok_or_else(unknown)?;
    let make = O::CONSTRUCTORS.iter().find(|(known, _)| *known == options.implementation());
    let (_, make) = make.ok_or_else(unknown)?;
    make(&Maker { settings, resources, role: O::ROLE, name }, &options)
}

impl AgentSet {
    /// Agents made by these factories; for tests and for programs that bring their own.
    pub fn of(
        names: Names,
        kinds: Kinds,
        executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
        verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
        coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
    ) -> Self {
        Self {
            names,
            notes: Vec::new(),
            kinds,
            needs_algorithm: false,
            executor: Arc::new(executor),
            verifier: Arc::new(verifier),
            coordinator: Arc::new(coordinator),
        }
    }

    /// The agents that the settings name.
    ///
    /// # Errors
    /// When a name is nobody's, or the agent cannot be had: its engine was not started, or an option that it needs is
    /// empty.
    pub fn from_settings(settings: &Settings, resources: &Resources) -> Result<Self, RegistryError> {
        let names = Names::of(settings);
        let verifier = factory::<VerifierAgent>(settings, resources, &names.verifier)?;
        Ok(Self {
            notes: notes(settings),
            kinds: verifier().kinds(),
            needs_algorithm: needs_algorithm(settings, &names.executor),
            executor: factory::<ExecutorAgent>(settings, resources, &names.executor)?,
            coordinator: factory::<CoordinatorAgent>(settings, resources, &names.coordinator)?,
            verifier,
            names,
        })
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What a reader must know of them before comparing: that one is no model, or knows the algorithm.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the executor only follows a task's own algorithm, which a client's own problem does not have.
    pub fn needs_algorithm(&self) -> bool {
        self.needs_algorithm
    }

    /// What the verifier checks; empty when nothing is.
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    pub fn executor(&self) -> Arc<dyn Executor> {
        (self.executor)()
    }

    pub fn verifier(&self) -> Arc<dyn Verifier> {
        (self.verifier)()
    }

    pub fn coordinator(&self) -> Arc<dyn Coordinator> {
        (self.coordinator)()
    }
}

/// Whether an executor, or one that it is made of, follows a task's own algorithm.
fn needs_algorithm(settings: &Settings, name: &str) -> bool {
    let Some(options) = settings.agent::<ExecutorAgent>(name) else { return false };
    ["reference", "scripted"].contains(&options.implementation())
        || options.members().into_iter().any(|member| needs_algorithm(settings, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::implementations;

    fn constructed<O: Constructed>() -> (Role, Vec<&'static str>) {
        (O::ROLE, O::CONSTRUCTORS.iter().map(|(name, _)| *name).collect())
    }

    #[test]
    fn every_implementation_that_can_be_named_can_be_made() {
        for (role, constructed) in
            [constructed::<ExecutorAgent>(), constructed::<VerifierAgent>(), constructed::<CoordinatorAgent>()]
        {
            let named: Vec<_> = implementations(role).iter().map(|known| known.name).collect();
            assert_eq!(constructed, named, "{role}");
        }
    }
}
