//! Puts the parts together: from settings to a runtime with its engines. The one module that knows every component.

mod overrides;
mod plan;
mod resources;
pub mod split;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::agents::pools::Pools;
use crate::agents::{AgentSet, Names, Resources, registry::RegistryError};
use crate::runtime::{Hangs, Observer, RunHandle, RunSampling, Runtime, Silent, Submission};
use crate::settings::{ModelMissing, Settings};
use crate::shipped_model::CacheError;
use prime_bench::tasks::Problem;
use prime_engine::{Engine, EngineError};
use prime_protocol::{Outcome, RunPlan};

pub use overrides::Overrides;
pub use plan::{basis_on, run_plan, run_sampling, runtime_plan};
use resources::Running;
pub use resources::{engine_spec, model_source, resources, resources_of};

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("engine `{engine}`: {reason}")]
    Engine { engine: String, reason: EngineError },
    #[error("engine `{engine}`: {reason}")]
    Model { engine: String, reason: ModelMissing },
    #[error("engine `{engine}`: {reason}")]
    ModelCache { engine: String, reason: CacheError },
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// The runtime ended before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime ended before the run")]
pub struct RuntimeEnded;

/// A running process: agents, engines, cells.
pub struct App {
    settings: Settings,
    config_hash: String,
    resources: Resources,
    runtime: Arc<Runtime>,
    /// Cells for runs with overrides, one runtime for each combination of agents, started on first use.
    others: Mutex<Vec<Arc<Runtime>>>,
}

/// Cores available to this process.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl App {
    /// Starts the engines that the agents need, then the cells. Must be called within an actix system; blocks while a model
    /// loads.
    ///
    /// # Errors
    /// When an engine or an agent cannot be constructed, with its key in the configuration.
    pub fn start(settings: Settings) -> Result<Self, AppError> {
        let resources = resources::resources(&settings)?;
        Self::with_resources(settings, resources)
    }

    /// Starts the cells on running engines, which several configurations can share. Must be called within an actix system.
    ///
    /// # Errors
    /// When an agent cannot be constructed.
    pub fn with_resources(settings: Settings, resources: Resources) -> Result<Self, AppError> {
        let agents = AgentSet::from_settings(&settings, &resources)?;
        let compared = &settings.agents.split;
        if !compared.other.is_empty() {
            // A mistake in the other agent must show now, not with the first run on that side.
            let mut other = Overrides::default();
            other.choose(compared.role, &compared.other);
            AgentSet::from_settings(&other.apply(&settings), &resources)?;
        }
        let runtime = Arc::new(Runtime::start(&runtime_plan(&settings), agents));
        Ok(Self { config_hash: settings.hash(), settings, resources, runtime, others: Mutex::default() })
    }

    /// Starts the cells with the given agents, in place of the configured ones and under their names. Starts no engine. Must
    /// be called within an actix system.
    pub fn with_agents(settings: Settings, agents: AgentSet) -> Self {
        let resources = resources::new(BTreeMap::new(), Pools::default());
        let runtime = Arc::new(Runtime::start(&runtime_plan(&settings), agents));
        Self { config_hash: settings.hash(), settings, resources, runtime, others: Mutex::default() }
    }

    /// The same process with other settings, for future runs. An engine is kept if its entry has not changed; otherwise a new
    /// one is started beside it, which blocks while its model loads. Must be called within an actix system.
    ///
    /// # Errors
    /// As [`App::start`].
    pub fn with_settings(&self, settings: Settings) -> Result<Self, AppError> {
        let entry = |(name, engine): (&String, &Engine)| {
            let entry = self.settings.engines.get(name)?;
            Some((name.clone(), (entry.clone(), engine.clone())))
        };
        let running: Running = self.resources.engines.iter().filter_map(entry).collect();
        let resources = resources::renewed(&settings, &running, self.resources.pools.clone())?;
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

    /// The cells for runs with these overrides, started on first use. Must be called within an actix system.
    ///
    /// # Errors
    /// When an agent cannot be constructed, such as `llama` without a started engine.
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

    /// The pools of model servers in use.
    pub fn pools(&self) -> &Pools {
        &self.resources.pools
    }

    /// Agents of all runtimes that block their thread.
    pub fn hangs(&self) -> Hangs {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&self.runtime).chain(others.iter()).map(|runtime| runtime.hangs()).sum()
    }

    /// The running engines, by name.
    pub fn engines(&self) -> &BTreeMap<String, Engine> {
        &self.resources.engines
    }

    /// The configured plan of a run.
    pub fn plan(&self, problem: &dyn Problem) -> RunPlan {
        run_plan(&self.settings, self.runtime.agents().basis(), problem)
    }

    /// Runs a problem as configured and waits for the outcome.
    ///
    /// # Errors
    /// When the runtime ends first.
    pub async fn solve(&self, problem: Arc<dyn Problem>) -> Result<Outcome, RuntimeEnded> {
        let plan = self.plan(problem.as_ref());
        let mut run = self.submit(problem, plan, run_sampling(&self.settings), Arc::new(Silent));
        run.outcome().await.ok_or(RuntimeEnded)
    }

    /// Starts a run.
    pub fn submit(
        &self,
        problem: Arc<dyn Problem>,
        plan: RunPlan,
        sampling: RunSampling,
        observer: Arc<dyn Observer>,
    ) -> RunHandle {
        self.runtime.submit(Submission { problem, plan, sampling, observer, suspended: None })
    }

    /// Stops the engines; runs in progress fail.
    pub fn shutdown(&self) {
        self.resources.engines.values().for_each(Engine::shutdown);
    }
}
