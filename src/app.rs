//! Puts the parts together: settings in, a runtime with its engines out. The one module that knows every component.

pub mod split;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agents::pools::Pools;
use crate::agents::{AgentSet, Names, Resources, registry::RegistryError};
use crate::runtime::{Observer, Placement, RestartLimit, RunHandle, RunSampling, Runtime, RuntimePlan, Submission};
use crate::settings::{self, GroupSize, ModelSource, Settings, StrategyName, VoteName};
use crate::shipped_model::{self, CacheError};
use prime_bench::tasks::{Kinds, Problem};
use prime_engine::{Engine, EngineError, EngineSpec};
use prime_protocol::reliability::least_k;
use prime_protocol::strategy::{difficulty, group_size};
use prime_protocol::{Ahead, Beam, Budget, Limits, RewardWeights, RunPlan, Strategy, VoteRule};

/// Why the parts could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("engine `{engine}`: {reason}")]
    Engine { engine: String, reason: EngineError },
    #[error("engine `{engine}`: {reason}")]
    Model { engine: String, reason: settings::ModelMissing },
    #[error("engine `{engine}`: {reason}")]
    ModelCache { engine: String, reason: CacheError },
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// Implementations that one run has in place of the configured ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<String>,
}

impl Overrides {
    /// The settings with these agents.
    pub fn apply(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let agents = &mut settings.agents;
        for (wish, implementation) in [
            (&self.executor, &mut agents.executor.implementation),
            (&self.verifier, &mut agents.verifier.implementation),
            (&self.coordinator, &mut agents.coordinator.implementation),
        ] {
            if let Some(wish) = wish {
                implementation.clone_from(wish);
            }
        }
        settings
    }
}

/// A running process: agents, engines, cells.
pub struct App {
    settings: Settings,
    config_hash: String,
    resources: Resources,
    runtime: Arc<Runtime>,
    /// Further cells, for runs with other agents than the configured ones; started when first asked for. There are as
    /// many as combinations of implementations.
    others: Mutex<Vec<Arc<Runtime>>>,
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Where an engine's model comes from.
///
/// # Errors
/// The model's file does not exist.
pub fn model_source(name: &str, engine: &settings::Engine) -> Result<ModelSource, AppError> {
    let executable: Option<PathBuf> = std::env::current_exe().ok();
    let source = engine.find_model(executable.as_deref());
    source.map_err(|reason| AppError::Model { engine: name.to_owned(), reason })
}

/// An engine of the settings as the engine module wants it.
///
/// # Errors
/// The model's file does not exist, or the built-in model cannot be written to the cache.
pub fn engine_spec(name: &str, engine: &settings::Engine) -> Result<EngineSpec, AppError> {
    let model = match model_source(name, engine)? {
        ModelSource::File(path) => path,
        ModelSource::BuiltIn => {
            shipped_model::file().map_err(|reason| AppError::ModelCache { engine: name.to_owned(), reason })?
        }
    };
    let narrow = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let threads = if engine.threads == 0 {
        // A core is left to the actors; a small model gains nothing from many threads.
        u32::try_from(cores().saturating_sub(1).clamp(1, 8)).unwrap_or(1)
    } else {
        engine.threads
    };
    Ok(EngineSpec {
        name: name.to_owned(),
        model,
        device: engine.device.clone(),
        isolation: engine.isolation,
        kv: engine.kv_cache,
        context_tokens: engine.context_tokens,
        sequences_max: narrow(engine.sequences_max),
        batch_tokens: engine.batch_tokens,
        kept_max: narrow(engine.cached_sequences_max),
        prefill_tokens: engine.prefill_tokens,
        threads: narrow(threads),
        deadline_ms: engine.deadline_ms,
        start_timeout_ms: engine.start_timeout_ms,
        restarts_max: engine.restarts_max,
        restart_window_ms: engine.restart_window_ms,
        ..EngineSpec::default()
    })
}

/// The strategy that the settings ask for, for a problem whose longest valid trace has so many steps.
fn strategy(run: &settings::Run, steps_max: u64) -> Strategy {
    match run.strategy {
        StrategyName::Iterative => Strategy::Iterative,
        StrategyName::Greedy => Strategy::Greedy,
        StrategyName::BestOfN => Strategy::BestOfN,
        StrategyName::Beam => Strategy::Beam(Beam { width: run.beam.width, actions: run.beam.actions }),
        StrategyName::Ahead => {
            let ahead = &run.ahead;
            let least = || least_k(ahead.step_accuracy, ahead.reliability, steps_max);
            Strategy::Ahead(Ahead {
                k: if ahead.k > 0 { ahead.k } else { least().expect("invariant: settings are validated") },
                samples_max: ahead.samples_max,
                characters_max: ahead.characters_max,
                step_accuracy: ahead.step_accuracy,
            })
        }
    }
}

/// Turns side by side.
fn fanout(run: &settings::Run, steps_max: u64) -> u32 {
    match (run.strategy, run.group.size) {
        (StrategyName::Greedy, _) => 1,
        (StrategyName::Beam, _) => run.beam.width * run.beam.actions,
        (_, GroupSize::Fixed) => run.fanout,
        (_, GroupSize::Dynamic) => group_size(run.group.min, run.group.max, run.group.midpoint, difficulty(steps_max)),
    }
}

/// The plan of a run of a problem as the settings have it; `kinds` is what its verifier checks.
pub fn run_plan(settings: &Settings, kinds: Kinds, problem: &dyn Problem) -> RunPlan {
    let run = &settings.run;
    RunPlan {
        strategy: strategy(run, problem.steps_max()),
        vote: match run.vote {
            VoteName::Majority => VoteRule::Majority,
            VoteName::Tolerance => VoteRule::Tolerance(run.tolerance),
            VoteName::Weighted => VoteRule::Weighted,
        },
        early_stop: run.early_stop,
        adaptive_rounds: run.adaptive_rounds,
        fanout: fanout(run, problem.steps_max()),
        max_rounds: run.max_rounds,
        confidence: run.confidence,
        limits: Limits {
            attempts_max: run.attempts_max,
            pops_max: run.pops_max,
            snapshot_every_frames: run.snapshot_every_frames as usize,
        },
        budget: Budget { steps: run.budget.steps, tokens: run.budget.tokens, wall_ms: run.budget.wall_ms },
        weights: RewardWeights {
            task: run.reward.task,
            verify: run.reward.verify,
            efficiency: run.reward.efficiency,
            format: run.reward.format,
        },
        // Where only the form of lines can be checked, no answer is called verified.
        is_checked: kinds != Kinds::NONE && problem.has_checks(),
        speculate: run.speculate,
    }
}

/// How a run's executor draws, as the settings have it.
#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
pub fn run_sampling(settings: &Settings) -> RunSampling {
    let run = &settings.run;
    RunSampling { temperature: run.temperature as f32, top_p: run.top_p as f32, seed: run.seed }
}

/// The shape of the runtime, as the settings have it.
pub fn runtime_plan(settings: &Settings) -> RuntimePlan {
    let runtime = &settings.runtime;
    RuntimePlan {
        cells: if runtime.cells == 0 { cores() } else { runtime.cells as usize },
        placement: match runtime.placement {
            settings::Placement::Shared => Placement::Shared,
            settings::Placement::Own => Placement::Own,
        },
        restart_limit: RestartLimit {
            restarts_max: runtime.restarts_max,
            window: Duration::from_millis(runtime.restart_window_ms),
        },
        in_flight_max: runtime.in_flight_max,
    }
}

/// Starts the engines that the configured agents ask, and gives agents the environment.
///
/// # Errors
/// Whatever keeps an engine from starting.
pub fn resources(settings: &Settings) -> Result<Resources, AppError> {
    renewed(settings, &BTreeMap::new(), Pools::default())
}

/// As [`resources`], for agents of several configurations that have the same engines and pools: each engine is started
/// once, if any of them asks it.
///
/// # Errors
/// Whatever keeps an engine from starting.
pub fn resources_of<'s>(all: impl IntoIterator<Item = &'s Settings>) -> Result<Resources, AppError> {
    let mut running = Running::new();
    let mut pools = Pools::default();
    for settings in all {
        let resources = renewed(settings, &running, pools)?;
        let entry = |(name, engine): (String, Engine)| {
            let entry = settings.engines.get(&name).expect("invariant: an engine was started from its entry").clone();
            (name, (entry, engine))
        };
        running.extend(resources.engines.into_iter().map(entry));
        pools = resources.pools;
    }
    let engines = running.into_iter().map(|(name, (_, engine))| (name, engine)).collect();
    Ok(Resources { engines, pools, environment: Arc::new(environment), tap: None })
}

/// Engines that run, with the entries that they were started from.
type Running = BTreeMap<String, (settings::Engine, Engine)>;

/// As [`resources`], where engines that run already as configured are kept.
fn renewed(settings: &Settings, running: &Running, pools: Pools) -> Result<Resources, AppError> {
    let mut engines = BTreeMap::new();
    for name in settings.engines_needed() {
        let entry = settings.engines.get(&name).expect("invariant: validated settings name existing engines");
        let engine = match running.get(&name) {
            Some((known, engine)) if known == entry => engine.clone(),
            _ => Engine::start(engine_spec(&name, entry)?)
                .map_err(|reason| AppError::Engine { engine: name.clone(), reason })?,
        };
        engines.insert(name, engine);
    }
    Ok(Resources { engines, pools, environment: Arc::new(environment), tap: None })
}

#[expect(
    clippy::disallowed_methods,
    reason = "keys of servers are in the environment only; agents ask for them by name"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl App {
    /// Starts the engines that the agents need, then the cells. Must be called within an actix system; blocks while
    /// a model loads.
    ///
    /// # Errors
    /// Whatever keeps an engine or an agent from being had, with the key of the configuration that names it.
    pub fn start(settings: Settings) -> Result<Self, AppError> {
        let resources = resources(&settings)?;
        Self::with_resources(settings, resources)
    }

    /// Starts the cells on engines that run already: several configurations can share them.
    ///
    /// # Errors
    /// When an agent cannot be had.
    pub fn with_resources(settings: Settings, resources: Resources) -> Result<Self, AppError> {
        let agents = AgentSet::from_settings(&settings, &resources)?;
        let compared = &settings.agents.split;
        if !compared.other.is_empty() {
            // A run on the other side must not be the first to find that its agent cannot be had.
            let mut other = Overrides::default();
            other.choose(compared.role, &compared.other);
            AgentSet::from_settings(&other.apply(&settings), &resources)?;
        }
        let runtime = Arc::new(Runtime::start(&runtime_plan(&settings), agents));
        Ok(Self { config_hash: settings.hash(), settings, resources, runtime, others: Mutex::default() })
    }

    /// Starts the cells with agents of the caller's own, which stand under the names that are configured. No engine is
    /// started. Must be called within an actix system.
    pub fn with_agents(settings: Settings, agents: AgentSet) -> Self {
        let (engines, pools) = (BTreeMap::new(), Pools::default());
        let resources = Resources { engines, pools, environment: Arc::new(environment), tap: None };
        let runtime = Arc::new(Runtime::start(&runtime_plan(&settings), agents));
        Self { config_hash: settings.hash(), settings, resources, runtime, others: Mutex::default() }
    }

    /// The same process with other settings, for runs to come. An engine stays where its own settings do; otherwise a
    /// new one is started beside it, which blocks while a model loads. Must be called within an actix system.
    ///
    /// # Errors
    /// As [`App::start`].
    pub fn with_settings(&self, settings: Settings) -> Result<Self, AppError> {
        let entry = |(name, engine): (&String, &Engine)| {
            let entry = self.settings.engines.get(name)?;
            Some((name.clone(), (entry.clone(), engine.clone())))
        };
        let running: Running = self.resources.engines.iter().filter_map(entry).collect();
        let resources = renewed(&settings, &running, self.resources.pools.clone())?;
        Self::with_resources(settings, resources)
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn config_hash(&self) -> &str {
        &self.config_hash
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The cells whose agents are the configured ones with these in their place. Must be called within an actix system.
    ///
    /// # Errors
    /// When an agent cannot be had, such as `llama` where no engine was started.
    pub fn runtime_of(&self, overrides: &Overrides) -> Result<Arc<Runtime>, RegistryError> {
        let settings = overrides.apply(&self.settings);
        let names = Names::of(&settings);
        if names == *self.runtime.agents().names() {
            return Ok(Arc::clone(&self.runtime));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others.iter().find(|runtime| *runtime.agents().names() == names) {
            return Ok(Arc::clone(known));
        }
        let agents = AgentSet::from_settings(&settings, &self.resources)?;
        let runtime = Arc::new(Runtime::start(&runtime_plan(&self.settings), agents));
        others.push(Arc::clone(&runtime));
        Ok(runtime)
    }

    /// The pools of servers that agents have opened.
    pub fn pools(&self) -> &Pools {
        &self.resources.pools
    }

    /// The engines that run, by name.
    pub fn engines(&self) -> &BTreeMap<String, Engine> {
        &self.resources.engines
    }

    /// The plan of a run of a problem with the process's settings.
    pub fn plan(&self, problem: &dyn Problem) -> RunPlan {
        run_plan(&self.settings, self.runtime.agents().kinds(), problem)
    }

    /// Starts a run.
    pub fn submit(
        &self,
        problem: Arc<dyn Problem>,
        plan: RunPlan,
        sampling: RunSampling,
        observer: Arc<dyn Observer>,
    ) -> RunHandle {
        self.runtime.submit(Submission { problem, plan, sampling, observer, resting: None })
    }

    /// Ends the engines; live runs get an error.
    pub fn shutdown(&self) {
        self.resources.engines.values().for_each(Engine::shutdown);
    }
}
