//! From names in the configuration to agent factories. Expensive parts (an engine, a pool of
//! servers or programs) are created once and shared by all agents of a factory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ensemble::{EnsembleMember, EnsembleVerifier};
use super::escalation::{EscalatingExecutor, NamedExecutor};
use super::executor_abilities::{needs_algorithm, reads_prose};
use super::factory::Factory;
use super::llm::{EngineModel, Learnt, ModelByTask, from_settings};
use super::model::{Model, Tap, TappedModel};
use super::pools::{Environment, Pools};
use super::process::{ProcessCoordinator, ProcessExecutor, ProcessVerifier};
use super::programs::Programs;
use super::prompt::TemplateError;
use super::recorded::RecordedAgents;
use super::recording::{Recording, RecordingExecutor};
use super::{
    AdaptiveCoordinator, AgentSetId, Agents, Basis, Coordinator, Executor, Names,
    ReferenceExecutor, ReferenceVerifier, ReplayExecutor, RulesVerifier, ScriptedExecutor,
    ThresholdCoordinator, Verifier,
};
use prime_bench::tasks::{Kind, Kinds};
use prime_engine::Engine;
use prime_protocol::{Adaptive, Role, Score, Thresholds};
use prime_roles::next_agent_set_id;
use prime_settings::{
    AdaptiveOptions, Agent, CoordinatorAgent, CoordinatorImplementation, Ensemble, Escalation,
    ExecutorAgent, ExecutorImplementation, RoleOptions, Settings, VerifierAgent,
    VerifierImplementation,
};

/// The agents that the settings name.
pub fn configured_names(settings: &Settings) -> Names {
    let agents = &settings.agents;
    Names {
        executor: agents.executor.implementation.clone(),
        verifier: agents.verifier.implementation.clone(),
        coordinator: agents.coordinator.implementation.clone(),
    }
}

/// Labels for agents that know a task's algorithm or are not models, including parts of composite
/// agents.
fn labels(settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    settings.walk_configured::<ExecutorAgent>(&mut |name, agent| {
        let note = match agent.implementation {
            ExecutorImplementation::Reference => "is the task's own algorithm, not a model",
            ExecutorImplementation::Scripted => {
                "is the task's own algorithm with injected errors, not a model"
            }
            ExecutorImplementation::Replay => "replays given lines, not a model",
            ExecutorImplementation::Llama
            | ExecutorImplementation::Openai
            | ExecutorImplementation::Process
            | ExecutorImplementation::Escalation => return,
        };
        notes.push(format!("executor `{name}` {note}"));
    });
    settings.walk_configured::<VerifierAgent>(&mut |name, agent| {
        let is_rules = agent.implementation == VerifierImplementation::Rules;
        if is_rules && agent.options.kinds.contains(&Kind::Transition) {
            notes.push("the verifier checked transitions: it ran the algorithm beside the executor".to_owned());
        }
        if agent.implementation == VerifierImplementation::Reference {
            notes.push(format!(
                "verifier `{name}` knows the task's algorithm: for training and evaluation, never for claims about a model"
            ));
        }
    });
    notes
}

/// What agents are built with besides their options.
#[derive(Clone)]
pub struct Resources {
    /// The running engines, by name.
    pub engines: BTreeMap<String, Engine>,
    /// The SHA-256 of their models' files, as far as known.
    pub model_digests: BTreeMap<String, String>,
    pub pools: Pools,
    /// The programs of agents that were built with these.
    pub programs: Programs,
    /// The only source of API keys.
    pub environment: Environment,
    pub tap: Option<Tap>,
}

impl Default for Resources {
    /// No engines and an empty environment.
    fn default() -> Self {
        Self {
            engines: BTreeMap::new(),
            model_digests: BTreeMap::new(),
            pools: Pools::default(),
            programs: Programs::default(),
            environment: Arc::new(|_| None),
            tap: None,
        }
    }
}

/// The agents of a run, as factories.
pub struct AgentSet {
    id: AgentSetId,
    names: Names,
    notes: Vec<String>,
    basis: Basis,
    needs_algorithm: bool,
    reads_prose: bool,
    /// `None` for custom agents.
    recorded: Option<Arc<RecordedAgents>>,
    executor: Factory<dyn Executor>,
    verifier: Factory<dyn Verifier>,
    coordinator: Factory<dyn Coordinator>,
}

/// An agent that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("agents.{role}.implementation: unknown agent {name:?}")]
    Unknown { role: Role, name: String },
    #[error("{role} `{name}`: {reason}")]
    Unusable { role: Role, name: String, reason: String },
}

/// Builds a factory from an agent's options.
struct FactoryBuilder<'a> {
    settings: &'a Settings,
    resources: &'a Resources,
    role: Role,
    /// The agent's name in the configuration.
    name: &'a str,
}

impl FactoryBuilder<'_> {
    fn unusable(&self, reason: impl Into<String>) -> RegistryError {
        RegistryError::Unusable {
            role: self.role,
            name: self.name.to_owned(),
            reason: reason.into(),
        }
    }

    fn engine(&self, name: &str) -> Result<Engine, RegistryError> {
        let found = self.resources.engines.get(name).cloned();
        found.ok_or_else(|| {
            self.unusable(format!(
                "needs the engine `{name}`, which is not running: no agent of the configuration uses it"
            ))
        })
    }
}

impl FactoryBuilder<'_> {
    /// The pool's or engine's model that these options name.
    fn model<O: RoleOptions>(
        &self,
        agent: &Agent<O>,
        is_chat: bool,
    ) -> Result<Arc<dyn Model>, RegistryError> {
        if let Some(pool) = agent.pool() {
            let model = self.resources.pools.get(pool, self.settings, &self.resources.environment);
            return Ok(self.tapped(model.map_err(|reason| self.unusable(reason))?));
        }
        let mut models: Vec<(Learnt, Arc<dyn Model>)> = Vec::new();
        for name in agent.engines() {
            let model = Arc::new(EngineModel::new(self.engine(name)?, is_chat));
            let entry = self.settings.engines.get(name).cloned();
            models.push((Box::new(move |task| entry.as_ref()?.has_learnt(task)), model));
        }
        Ok(self.tapped(ModelByTask::new(models)))
    }

    fn tapped(&self, model: impl Model + 'static) -> Arc<dyn Model> {
        match self.resources.tap.clone() {
            Some(tap) => Arc::new(TappedModel::new(model, tap)),
            None => Arc::new(model),
        }
    }

    fn checked<A: ?Sized>(&self, factory: Result<Factory<A>, TemplateError>) -> FactoryResult<A> {
        factory.map_err(|error| self.unusable(error.to_string()))
    }

    /// Another agent of the role, by name.
    fn member<O: Constructed>(&self, name: &str) -> FactoryResult<O::Agent> {
        factory::<O>(self.settings, self.resources, name)
    }

    fn recording(&self, path: &str) -> Result<Recording, RegistryError> {
        let refuse = |reason: String| self.unusable(format!("recording {path}: {reason}"));
        let text = std::fs::read_to_string(path)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        Recording::read(&text).map_err(|error| refuse(error.to_string()))
    }
}

type FactoryResult<A> = Result<Factory<A>, RegistryError>;

/// A role whose agents are built from their options.
trait Constructed: RoleOptions + 'static {
    type Agent: ?Sized + 'static;

    fn construct(builder: &FactoryBuilder<'_>, agent: &Agent<Self>) -> FactoryResult<Self::Agent>;
}

impl Constructed for ExecutorAgent {
    type Agent = dyn Executor;

    fn construct(builder: &FactoryBuilder<'_>, agent: &Agent<Self>) -> FactoryResult<dyn Executor> {
        let options = &agent.options;
        match agent.implementation {
            ExecutorImplementation::Llama | ExecutorImplementation::Openai => {
                let model = builder.model(agent, options.chat_template)?;
                let (settings, name) = (builder.settings, builder.name);
                builder.checked(from_settings::executor(settings, name, agent, model))
            }
            ExecutorImplementation::Process => {
                let agent = ProcessExecutor::start(builder.name, &options.program);
                let agent = agent.map_err(|error| builder.unusable(error.to_string()))?;
                builder.resources.programs.add(agent.pool());
                Ok(Arc::new(move || Arc::new(agent.clone())))
            }
            ExecutorImplementation::Reference => Ok(Arc::new(|| Arc::new(ReferenceExecutor))),
            ExecutorImplementation::Scripted => {
                let error_rate = options.error_rate;
                let latency = Duration::from_millis(options.latency_ms);
                Ok(Arc::new(move || {
                    Arc::new(ScriptedExecutor::new(error_rate).with_latency(latency))
                }))
            }
            ExecutorImplementation::Replay => replay(builder, options),
            ExecutorImplementation::Escalation => escalation(builder, &options.escalation),
        }
    }
}

fn replay(builder: &FactoryBuilder<'_>, options: &ExecutorAgent) -> FactoryResult<dyn Executor> {
    if !options.recording.is_empty() {
        let recording = Arc::new(builder.recording(&options.recording)?);
        return Ok(Arc::new(move || {
            Arc::new(RecordingExecutor::new(Arc::clone(&recording), None))
        }));
    }

    let lines = options.lines.clone();
    if lines.is_empty() {
        return Err(
            builder.unusable("needs lines to propose: set `lines`, or `recording` to a trace")
        );
    }
    Ok(Arc::new(move || Arc::new(ReplayExecutor::new(lines.clone()))))
}

fn escalation(builder: &FactoryBuilder<'_>, options: &Escalation) -> FactoryResult<dyn Executor> {
    let Escalation { small, large, samples, after_rejections } = options.clone();
    let named = |name: &str| -> Result<_, RegistryError> {
        let make = builder.member::<ExecutorAgent>(name)?;
        let name: Arc<str> = name.into();
        Ok(move || NamedExecutor { name: Arc::clone(&name), executor: make() })
    };
    let (small, large) = (named(&small)?, named(&large)?);

    Ok(Arc::new(move || {
        let executor = EscalatingExecutor::new(small(), large(), samples, after_rejections);
        Arc::new(executor.expect("invariant: settings are validated"))
    }))
}

impl Constructed for VerifierAgent {
    type Agent = dyn Verifier;

    fn construct(builder: &FactoryBuilder<'_>, agent: &Agent<Self>) -> FactoryResult<dyn Verifier> {
        let options = &agent.options;
        match agent.implementation {
            VerifierImplementation::Rules => {
                let kinds: Kinds = options.kinds.iter().copied().collect();
                Ok(Arc::new(move || Arc::new(RulesVerifier::new(kinds))))
            }
            VerifierImplementation::Llama | VerifierImplementation::Openai => {
                let model = builder.model(agent, options.chat_template)?;
                let (settings, name) = (builder.settings, builder.name);
                builder.checked(from_settings::verifier(settings, name, agent, model))
            }
            VerifierImplementation::Process => {
                let kinds = options.kinds.iter().copied().collect();
                let agent = ProcessVerifier::start(builder.name, &options.program, kinds);
                let agent = agent.map_err(|error| builder.unusable(error.to_string()))?;
                builder.resources.programs.add(agent.pool());
                Ok(Arc::new(move || Arc::new(agent.clone())))
            }
            VerifierImplementation::Ensemble => ensemble(builder, &options.ensemble),
            VerifierImplementation::Reference => Ok(Arc::new(|| Arc::new(ReferenceVerifier))),
            VerifierImplementation::None => {
                Ok(Arc::new(|| Arc::new(RulesVerifier::new(Kinds::NONE))))
            }
        }
    }
}

fn ensemble(builder: &FactoryBuilder<'_>, options: &Ensemble) -> FactoryResult<dyn Verifier> {
    let Ensemble { members, delta } = options.clone();
    let made: Result<Vec<_>, _> =
        members.iter().map(|name| builder.member::<VerifierAgent>(name)).collect();
    let (made, delta) = (made?, score(delta));
    let make = move || {
        let member = |(name, make): (&String, &Factory<dyn Verifier>)| EnsembleMember {
            name: name.clone(),
            verifier: make(),
        };
        EnsembleVerifier::new(members.iter().zip(&made).map(member).collect(), delta)
    };

    // Whether these members can form an ensemble must show now, not when an actor starts.
    make().map_err(|reason| builder.unusable(reason))?;
    Ok(Arc::new(move || Arc::new(make().expect("invariant: the first one could be built"))))
}

impl Constructed for CoordinatorAgent {
    type Agent = dyn Coordinator;

    fn construct(
        builder: &FactoryBuilder<'_>,
        agent: &Agent<Self>,
    ) -> FactoryResult<dyn Coordinator> {
        let options = &agent.options;
        let thresholds = thresholds(builder.settings);
        match agent.implementation {
            CoordinatorImplementation::Adaptive => {
                let AdaptiveOptions { target, gain, smoothing, tau_min, tau_max } =
                    options.adaptive;
                let bounds = (score(tau_min), score(tau_max));
                let policy = Adaptive::new(thresholds, target, gain, smoothing, bounds);
                let policy = policy.map_err(|reason| builder.unusable(reason))?;
                Ok(Arc::new(move || Arc::new(AdaptiveCoordinator(policy))))
            }
            CoordinatorImplementation::Llama | CoordinatorImplementation::Openai => {
                let model = builder.model(agent, options.chat_template)?;
                let (settings, name) = (builder.settings, builder.name);
                builder
                    .checked(from_settings::coordinator(settings, name, agent, thresholds, model))
            }
            CoordinatorImplementation::Process => {
                let agent = ProcessCoordinator::start(builder.name, &options.program, thresholds);
                let agent = agent.map_err(|error| builder.unusable(error.to_string()))?;
                builder.resources.programs.add(agent.pool());
                Ok(Arc::new(move || Arc::new(agent.clone())))
            }
            CoordinatorImplementation::Threshold => {
                Ok(Arc::new(move || Arc::new(ThresholdCoordinator(thresholds))))
            }
        }
    }
}

fn score(value: f64) -> Score {
    Score::from_value(value).expect("invariant: settings are validated")
}

/// The thresholds that the settings give.
fn thresholds(settings: &Settings) -> Thresholds {
    let run = &settings.run;
    Thresholds {
        soft: score(run.tau_soft),
        hard: score(run.tau_hard),
        retries_max: run.retries_max,
    }
}

/// A factory for the agent of this name.
fn factory<O: Constructed>(
    settings: &Settings,
    resources: &Resources,
    name: &str,
) -> FactoryResult<O::Agent> {
    let agent = settings
        .agent(name)
        .ok_or_else(|| RegistryError::Unknown { role: O::ROLE, name: name.to_owned() })?;
    O::construct(&FactoryBuilder { settings, resources, role: O::ROLE, name }, &agent)
}

impl AgentSet {
    /// Agents from custom factories, for tests and for programs with their own agents. `basis` is
    /// the verifier's.
    pub fn of(
        names: Names,
        basis: Basis,
        executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
        verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
        coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: next_agent_set_id(),
            names,
            notes: Vec::new(),
            basis,
            needs_algorithm: false,
            reads_prose: true,
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
        self.needs_algorithm = false;
        self.reads_prose = true;
        self.recorded = None;
        self.notes.retain(|note| !note.starts_with("executor"));
        self
    }

    /// The agents that the settings name.
    ///
    /// # Errors
    /// A name is unknown, or the agent cannot be built: its engine is not running, or a required
    /// option is empty.
    pub fn from_settings(
        settings: &Settings,
        resources: &Resources,
    ) -> Result<Self, RegistryError> {
        let names = configured_names(settings);
        let verifier = factory::<VerifierAgent>(settings, resources, &names.verifier)?;
        let basis = verifier().basis();
        Ok(Self {
            id: next_agent_set_id(),
            notes: labels(settings),
            basis,
            needs_algorithm: needs_algorithm(settings, &names.executor),
            reads_prose: reads_prose(settings, &names.executor),
            recorded: RecordedAgents::of(settings, resources, basis).map(Arc::new),
            executor: factory::<ExecutorAgent>(settings, resources, &names.executor)?,
            coordinator: factory::<CoordinatorAgent>(settings, resources, &names.coordinator)?,
            verifier,
            names,
        })
    }

    /// The same agents under the record that they were built from.
    #[must_use]
    pub fn with_record(self, recorded: Arc<RecordedAgents>) -> Self {
        Self { recorded: Some(recorded), ..self }
    }

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

    /// Whether the executor only follows a task's reference algorithm, which a client's problem
    /// does not have.
    pub fn needs_algorithm(&self) -> bool {
        self.needs_algorithm
    }

    /// Whether the executor is shown a problem in words, and not only the short view of a benchmark
    /// task's state.
    pub fn reads_prose(&self) -> bool {
        self.reads_prose
    }

    /// What the verifier's verdicts rest on.
    pub fn basis(&self) -> Basis {
        self.basis
    }
}

impl Agents for AgentSet {
    fn id(&self) -> AgentSetId {
        self.id
    }

    fn name(&self, role: Role) -> &str {
        let Names { executor, verifier, coordinator } = &self.names;
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
