//! Builds the factory of one agent from its options, and those of its members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{RegistryError, Resources};
use crate::ensemble::{EnsembleMember, EnsembleVerifier};
use crate::escalation::{EscalatingExecutor, NamedExecutor};
use crate::factory::Factory;
use crate::llm::{AdaptedModel, EngineModel, Learnt, ModelByTask, ServedModel, from_settings};
use crate::model::{KeptModel, Model, TappedModel};
use crate::priced::PricedModel;
use crate::process::{ProcessCoordinator, ProcessExecutor, ProcessVerifier};
use crate::prompt::TemplateError;
use crate::recording::{Recording, RecordingExecutor};
use crate::{
    AdaptiveCoordinator, Coordinator, Executor, ReferenceExecutor, ReferenceVerifier,
    ReplayExecutor, RulesVerifier, ScriptedExecutor, ScriptedVerifier, ThresholdCoordinator,
    UniformExecutor, Verifier,
};
use prime_bench::tasks::Kinds;
use prime_engine::Engine;
use prime_protocol::{Adaptive, Price, Role, Score, Thresholds};
use prime_settings::{
    AdaptiveOptions, Agent, AgentAdapters, Api, CoordinatorAgent, CoordinatorImplementation,
    Ensemble, Escalation, ExecutorAgent, ExecutorImplementation, Implementation as _, ModelPrice,
    RoleOptions, Settings, VerdictName, VerifierAgent, VerifierImplementation,
};

/// Builds a factory from an agent's options.
pub(super) struct FactoryBuilder<'a> {
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
                "needs the engine `{name}`, which is not running: no agent of the configuration \
                 uses it; a definition of an agent that requests may choose starts its engines"
            ))
        })
    }

    /// The pool's or engine's model that these options name.
    fn model<O: RoleOptions>(
        &self,
        agent: &Agent<O>,
        is_chat: bool,
    ) -> Result<Arc<dyn Model>, RegistryError> {
        if let Some(pool) = agent.pool() {
            self.check_api(pool, agent.implementation.name() == "reward")?;
            let model = self.resources.pools.get(pool, self.settings, &self.resources.environment);
            let model = model.map_err(|error| self.unusable(error.to_string()))?;
            let price = price(self.settings.pools.get(pool).and_then(|pool| pool.price));
            let adapters = agent.options.adapters();
            return Ok(if adapters.all().iter().all(Option::is_none) {
                self.tapped(PricedModel { model, price })
            } else {
                let model = ServedModel { choice: adapters.into(), pool: model };
                self.tapped(PricedModel { model, price })
            });
        }

        // The agent chooses among its engines by the task of each request.
        let mut models: Vec<(Learnt, Arc<dyn Model>)> = Vec::new();
        for name in agent.engines() {
            let engine = self.engine(name)?;
            if is_chat {
                let checked = engine.check_chat();
                checked.map_err(|reason| self.unusable(format!("engine `{name}`: {reason}")))?;
            }
            let model = self.adapted(name, &engine, agent.options.adapters(), is_chat)?;
            let entry = self.settings.engines.get(name).cloned();
            let price = price(entry.as_ref().and_then(|entry| entry.price));
            let model = Arc::new(PricedModel { model, price });
            models.push((Box::new(move |task| entry.as_ref()?.has_learnt(task)), model));
        }

        Ok(self.tapped(ModelByTask::new(models)))
    }

    /// The model of an engine with the agent's adapters: a context for each.
    fn adapted(
        &self,
        name: &str,
        engine: &Engine,
        adapters: AgentAdapters<'_>,
        is_chat: bool,
    ) -> Result<Arc<dyn Model>, RegistryError> {
        let mut models = BTreeMap::new();
        for path in adapters.all() {
            let adapter = path.map(|path| self.resources.adapter(path, adapters.scale));
            let adapter = adapter.transpose().map_err(|reason| self.unusable(reason))?;
            let context = engine.with_adapters(adapter.as_slice());
            let context =
                context.map_err(|reason| self.unusable(format!("engine `{name}`: {reason}")))?;
            let model: Arc<dyn Model> =
                Arc::new(EngineModel::new(context, is_chat).in_space(self.resources.space));
            models.insert(path.map(str::to_owned), model);
        }
        if models.len() == 1
            && let Some(model) = models.pop_first()
        {
            return Ok(model.1);
        }
        Ok(Arc::new(AdaptedModel::new(adapters.into(), models)))
    }

    /// Returns whether the servers of a pool return scores, if that is wanted, and text if not.
    fn check_api(&self, pool: &str, wants_scores: bool) -> Result<(), RegistryError> {
        let api = self.settings.pools.get(pool).map(|pool| pool.api);
        match api.map(Api::scores) {
            Some(false) if wants_scores => Err(self.unusable(format!(
                "asks for scores, but `pools.{pool}.api` is for text: set it to `score` or \
                 `pooling`"
            ))),
            Some(true) if !wants_scores => Err(self.unusable(format!(
                "asks for text, but `pools.{pool}.api` returns scores, which only the verifier \
                 `reward` reads: set it to `chat` or `completions`"
            ))),
            _ => Ok(()),
        }
    }

    fn tapped(&self, model: impl Model + 'static) -> Arc<dyn Model> {
        match self.resources.tap.clone() {
            Some(tap) => Arc::new(KeptModel(TappedModel::new(model, tap))),
            None => Arc::new(KeptModel(model)),
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

pub(super) type FactoryResult<A> = Result<Factory<A>, RegistryError>;

/// A role whose agents are built from their options.
pub(super) trait Constructed: RoleOptions + 'static {
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
                // Clones share the processes, so a replaced actor starts no new ones.
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
            ExecutorImplementation::Uniform => Ok(Arc::new(|| Arc::new(UniformExecutor))),
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
                let kinds = options.kinds;
                Ok(Arc::new(move || Arc::new(RulesVerifier::new(kinds))))
            }
            VerifierImplementation::Llama if options.verdict == VerdictName::Rating => Err(builder
                .unusable(
                    "`verdict = \"rating\"` needs the probabilities of several tokens, which a \
                     local engine does not return: use `openai` with a server, or another verdict",
                )),
            VerifierImplementation::Llama
            | VerifierImplementation::Openai
            | VerifierImplementation::Reward => {
                let model = builder.model(agent, options.chat_template)?;
                let (settings, name) = (builder.settings, builder.name);
                builder.checked(from_settings::verifier(settings, name, agent, model))
            }
            VerifierImplementation::Process => {
                let agent = ProcessVerifier::start(builder.name, &options.program, options.kinds);
                let agent = agent.map_err(|error| builder.unusable(error.to_string()))?;
                builder.resources.programs.add(agent.pool());
                Ok(Arc::new(move || Arc::new(agent.clone())))
            }
            VerifierImplementation::Ensemble => ensemble(builder, &options.ensemble),
            VerifierImplementation::Reference => Ok(Arc::new(|| Arc::new(ReferenceVerifier))),
            VerifierImplementation::Scripted => {
                let (false_accepts, false_rejects) = (options.false_accepts, options.false_rejects);
                let make = move || ScriptedVerifier::new(false_accepts, false_rejects);
                Ok(Arc::new(move || Arc::new(make())))
            }
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

    // An ensemble that these members cannot form must be refused now, not when an actor starts.
    make().map_err(|error| builder.unusable(error.to_string()))?;
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

fn price(configured: Option<ModelPrice>) -> Option<Price> {
    configured.map(|configured| configured.price())
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
pub(super) fn factory<O: Constructed>(
    settings: &Settings,
    resources: &Resources,
    name: &str,
) -> FactoryResult<O::Agent> {
    let agent = settings
        .agent(name)
        .ok_or_else(|| RegistryError::Unknown { role: O::ROLE, name: name.to_owned() })?;
    O::construct(&FactoryBuilder { settings, resources, role: O::ROLE, name }, &agent)
}
