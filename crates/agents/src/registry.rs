//! From names in the configuration to agent factories. Expensive parts (an engine, a pool of
//! servers or programs) are created once and shared by all agents of a factory.

mod build;
mod usable;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::card::{CardError, VerifierCard, VerifierIdentity};
use super::executor_abilities::{draws_choices, needs_algorithm, reads_prose};
use super::factory::Factory;
use super::model::Tap;
use super::pools::{Environment, Pools};
use super::programs::Programs;
use super::recorded::RecordedAgents;
use super::task_program::TaskPrograms;
use super::{AgentSetId, Agents, Basis, Coordinator, Executor, Names, Verifier};
use build::factory;
use prime_bench::tasks::{CheckedKinds, Kind, Problem};
use prime_engine::{Adapter, Engine, Scale};
use prime_protocol::Role;
use prime_roles::{CardQuote, LocatingCoordinator, next_agent_set_id};
use prime_settings::{
    CoordinatorAgent, ExecutorAgent, ExecutorImplementation, Settings, VerifierAgent,
    VerifierImplementation,
};
pub use usable::check_usable;

/// The agents that the settings name.
pub fn configured_names(settings: &Settings) -> Names {
    let agents = &settings.agents;
    Names {
        executor: agents.executor.implementation.clone(),
        verifier: agents.verifier.implementation.clone(),
        coordinator: agents.coordinator.implementation.clone(),
        locator: settings.locator().map(str::to_owned),
    }
}

/// Returns whether `transition` was asked for by name.
fn is_with_transition(kinds: CheckedKinds) -> bool {
    matches!(kinds, CheckedKinds::These(kinds) if kinds.contains(Kind::Transition))
}

/// Notes on the agents that know a task's algorithm or are not models, including members of
/// composite agents.
fn labels(settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    settings.walk_configured::<ExecutorAgent>(&mut |name, agent| {
        let note = match agent.implementation {
            ExecutorImplementation::Reference => "is the task's own algorithm, not a model",
            ExecutorImplementation::Scripted => {
                "is the task's own algorithm with injected errors, not a model"
            }
            ExecutorImplementation::Uniform => "draws among the valid choices, not a model",
            ExecutorImplementation::Replay => "replays given lines, not a model",
            ExecutorImplementation::Llama
            | ExecutorImplementation::Openai
            | ExecutorImplementation::Process
            | ExecutorImplementation::Escalation => return,
        };
        notes.push(format!("executor `{name}` {note}"));
    });

    settings.walk_locator(&mut |name, agent| {
        if agent.implementation == VerifierImplementation::Reference
            || is_with_transition(agent.options.kinds)
        {
            notes.push(format!(
                "locator `{name}` ran the algorithm beside the executor, and says where it erred"
            ));
        }
    });
    settings.walk_configured::<VerifierAgent>(&mut |name, agent| {
        let is_rules = agent.implementation == VerifierImplementation::Rules;
        if is_rules && is_with_transition(agent.options.kinds) {
            let note = "the verifier checked transitions: it ran the algorithm beside the executor";
            notes.push(note.to_owned());
        }

        if agent.implementation == VerifierImplementation::Scripted {
            notes.push(format!(
                "verifier `{name}` is the task's algorithm with injected errors, for studies"
            ));
        }
        if agent.implementation == VerifierImplementation::Reference {
            notes.push(format!(
                "verifier `{name}` knows the task's algorithm: for training and evaluation, never \
                 for claims about a model"
            ));
        }
    });
    notes
}

/// The coordinator, which asks the locator where there is one.
fn coordinator(
    settings: &Settings,
    resources: &Resources,
    names: &Names,
) -> Result<Factory<dyn Coordinator>, RegistryError> {
    let coordinator = factory::<CoordinatorAgent>(settings, resources, &names.coordinator)?;
    let Some(name) = names.locator.clone() else { return Ok(coordinator) };

    let locator = factory::<VerifierAgent>(settings, resources, &name)?;
    Ok(Arc::new(move || Arc::new(LocatingCoordinator::new(coordinator(), &name, locator()))))
}

/// What agents are built with besides their options.
#[derive(Clone)]
pub struct Resources {
    /// The running engines, by name.
    pub engines: BTreeMap<String, Engine>,
    /// The SHA-256 of the engines' model files, where known.
    pub model_digests: BTreeMap<String, String>,
    /// The SHA-256 of adapters' files, by path; others are read when an agent is built.
    pub adapter_digests: BTreeMap<String, String>,
    /// The open pools of servers.
    pub pools: Pools,
    /// The programs of the agents that were built with these resources.
    pub programs: Programs,
    /// The configured tasks that are programs.
    pub tasks: TaskPrograms,
    /// The only source of API keys.
    pub environment: Environment,
    /// Stands before all models, if set.
    pub tap: Option<Arc<dyn Tap>>,
    /// Models in local engines share no cached prefix with those of other spaces.
    pub space: u64,
}

impl Default for Resources {
    /// No engines and an empty environment.
    fn default() -> Self {
        Self {
            engines: BTreeMap::new(),
            model_digests: BTreeMap::new(),
            adapter_digests: BTreeMap::new(),
            pools: Pools::default(),
            programs: Programs::default(),
            tasks: TaskPrograms::default(),
            environment: Arc::new(|_| None),
            tap: None,
            space: 0,
        }
    }
}

impl Resources {
    /// An adapter, with the digest that is known here or else with that of the file as it is now.
    ///
    /// # Errors
    /// The file cannot be read, or the scale is out of range.
    pub fn adapter(&self, path: &str, scale: f64) -> Result<Adapter, String> {
        let adapter = match self.adapter_digests.get(path) {
            Some(digest) => {
                Adapter { path: path.into(), scale: Scale::default(), digest: Some(digest.clone()) }
            }
            None => Adapter::read(Path::new(path)).map_err(|error| error.to_string())?,
        };
        #[expect(clippy::cast_possible_truncation, reason = "llama.cpp scales in single precision")]
        let scale = Scale::try_from(scale as f32)?;
        Ok(Adapter { scale, ..adapter })
    }
}

/// What results quote of the configured verifier's card, if it has one.
fn quoted_card(
    settings: &Settings,
    recorded: &RecordedAgents,
) -> Result<Option<CardQuote>, RegistryError> {
    let Some(path) = settings.verifier_card() else { return Ok(None) };
    let name = &settings.agents.verifier.implementation;
    let identity = VerifierIdentity::of(settings, recorded)
        .expect("invariant: the record contains the configured verifier and its members");
    let quote = VerifierCard::quoted(Path::new(path), name, &identity);
    quote.map(Some).map_err(|error| RegistryError::Card(Box::new(error)))
}

/// The agents of a run, as factories.
pub struct AgentSet {
    id: AgentSetId,
    names: Names,
    notes: Vec<String>,
    /// One verifier of the set: only the agent itself knows what its verdicts rest on.
    judge: Arc<dyn Verifier>,
    needs_algorithm: bool,
    reads_prose: bool,
    draws_choices: bool,
    /// `None` for custom agents.
    recorded: Option<Arc<RecordedAgents>>,
    executor: Factory<dyn Executor>,
    verifier: Factory<dyn Verifier>,
    coordinator: Factory<dyn Coordinator>,
}

/// An agent that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No implementation or definition has this name.
    #[error("agents.{role}.implementation: unknown agent {name:?}")]
    Unknown {
        /// Role of the agent.
        role: Role,
        /// The name, as configured.
        name: String,
    },
    /// The agent cannot be built.
    #[error("{role} `{name}`: {reason}")]
    Unusable {
        /// Role of the agent.
        role: Role,
        /// Name of the agent.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The verifier's card cannot be quoted.
    #[error("agents.verifier.card: {0}")]
    Card(Box<CardError>),
}

impl AgentSet {
    /// Agents from custom factories, for tests and for programs with their own agents.
    pub fn of(
        names: Names,
        executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
        verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
        coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: next_agent_set_id(),
            names,
            notes: Vec::new(),
            judge: verifier(),
            needs_algorithm: false,
            reads_prose: true,
            draws_choices: false,
            recorded: None,
            executor: Arc::new(executor),
            verifier: Arc::new(verifier),
            coordinator: Arc::new(coordinator),
        }
    }

    /// The same agents with another executor, whose name results show.
    #[must_use]
    pub fn with_executor(
        mut self,
        name: &str,
        executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
    ) -> Self {
        name.clone_into(&mut self.names.executor);
        self.executor = Arc::new(executor);

        // What was known about the former executor no longer holds.
        self.needs_algorithm = false;
        self.reads_prose = true;
        self.draws_choices = false;
        self.recorded = None;
        self.notes.retain(|note| !note.starts_with("executor"));
        self
    }

    /// The agents that the settings name.
    ///
    /// # Errors
    /// A name is unknown, or the agent cannot be built: its engine is not running, or a required
    /// option is empty. Or the verifier's card is missing, of another version or of another verifier.
    pub fn from_settings(
        settings: &Settings,
        resources: &Resources,
    ) -> Result<Self, RegistryError> {
        let names = configured_names(settings);

        let verifier = factory::<VerifierAgent>(settings, resources, &names.verifier)?;
        let mut recorded = RecordedAgents::of(settings, resources);
        if let Some(recorded) = &mut recorded {
            recorded.card = quoted_card(settings, recorded)?;
        }

        Ok(Self {
            id: next_agent_set_id(),
            notes: labels(settings),
            judge: verifier(),
            needs_algorithm: needs_algorithm(settings, &names.executor),
            reads_prose: reads_prose(settings, &names.executor),
            draws_choices: draws_choices(settings, &names.executor),
            recorded: recorded.map(Arc::new),
            executor: factory::<ExecutorAgent>(settings, resources, &names.executor)?,
            coordinator: coordinator(settings, resources, &names)?,
            verifier,
            names,
        })
    }

    /// The same agents under the record that they were built from.
    #[must_use]
    pub fn with_record(self, recorded: Arc<RecordedAgents>) -> Self {
        Self { recorded: Some(recorded), ..self }
    }

    /// The names of the agents, for results.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What a later process needs to build the same agents; `None` for custom agents.
    pub fn recorded(&self) -> Option<&Arc<RecordedAgents>> {
        self.recorded.as_ref()
    }

    /// What a reader must know before comparing results: that an agent is not a model, or knows the
    /// algorithm.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns whether the executor only follows a task's reference algorithm, which a client's
    /// problem does not have.
    pub fn needs_algorithm(&self) -> bool {
        self.needs_algorithm
    }

    /// Returns whether the executor is shown a problem in words, and not only the short view of a
    /// benchmark task's state.
    pub fn reads_prose(&self) -> bool {
        self.reads_prose
    }

    /// Returns whether the executor only draws among the choices that a state lists.
    pub fn draws_choices(&self) -> bool {
        self.draws_choices
    }

    /// The identity of its verifier; `None` for custom agents.
    pub fn verifier_identity(&self, settings: &Settings) -> Option<VerifierIdentity> {
        VerifierIdentity::of(settings, self.recorded.as_deref()?)
    }

    /// One of its verifiers, to ask what its verdicts rest on.
    pub fn judge(&self) -> &Arc<dyn Verifier> {
        &self.judge
    }

    /// What the verifier's verdicts on a problem rest on.
    pub fn basis(&self, problem: &dyn Problem) -> Basis {
        self.judge.basis(problem.spec()).on(problem)
    }
}

impl Agents for AgentSet {
    fn id(&self) -> AgentSetId {
        self.id
    }

    fn name(&self, role: Role) -> &str {
        let Names { executor, verifier, coordinator, .. } = &self.names;
        match role {
            Role::Executor => executor,
            Role::Verifier => verifier,
            Role::Coordinator => coordinator,
        }
    }

    fn executor(&self) -> Arc<dyn Executor> {
        (self.executor)()
    }

    fn verifier(&self) -> Arc<dyn Verifier> {
        (self.verifier)()
    }

    fn coordinator(&self) -> Arc<dyn Coordinator> {
        (self.coordinator)()
    }
}
