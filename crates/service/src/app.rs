//! Puts the parts together: from settings to a runtime with its engines. Only this module knows
//! every component.

mod agent_sets;
mod cores;
mod error;
mod learnt;
mod overrides;
mod plan;
mod resources;
pub mod split;
pub mod turn;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use prime_agent_set::model::Tap;
use prime_agent_set::pools::Pools;
use prime_agent_set::programs::Programs;
use prime_agent_set::registry::RegistryError;
use prime_agent_set::task_program::{TaskPrograms, UploadedLimits};
use prime_agent_set::{
    AgentMissing, AgentSet, Names, RecordedAgents, Resources, engine_need, needs_met,
};
use prime_bench::tasks::Problem;
use prime_engine::Engine;
use prime_protocol::{Outcome, Role, RunPlan};
use prime_runtime::{Hangs, Observer, RunHandle, RunSampling, Runtime, Silent, Submission};
use prime_settings::{Settings, Uploads};

use agent_sets::AgentSets;
pub use cores::cores;
pub use error::AppError;
pub use learnt::{BeyondLearnt, NotLearnt, beyond_learnt, check_learnt};
pub use overrides::Overrides;
pub use plan::{planner, run_plan, run_sampling, runtime_plan};
use resources::running_of;
pub use resources::{
    check_agents, check_chat_templates, engine_spec, environment_of_the_process, model_source,
    resources, resources_of,
};

/// The limits of uploaded modules.
pub(crate) fn uploaded_limits(uploads: &Uploads) -> UploadedLimits {
    let Uploads { fuel_max, memory_bytes_max, line_bytes_max, threads, .. } = *uploads;
    UploadedLimits { fuel_max, memory_bytes_max, line_bytes_max, threads }
}

/// The runtime ended before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime ended before the run")]
pub struct RuntimeEnded;

/// Tasks that are programs, before an [`App`] takes them over.
#[derive(Default)]
pub struct OwnTasks {
    /// The tasks.
    pub tasks: TaskPrograms,
    /// The programs of these tasks, to end them.
    pub programs: Programs,
}

impl OwnTasks {
    /// The configured tasks.
    pub fn of(settings: &Settings) -> Self {
        let own = Self::default();
        own.tasks.configure(&settings.tasks, &own.programs);
        own
    }
}

/// A running process: agents, engines, cells.
pub struct App {
    settings: Settings,
    config_hash: String,
    resources: Resources,
    agents: AgentSets,
    /// Serves all combinations of agents.
    runtime: Arc<Runtime>,
}

impl App {
    /// Starts the engines that the agents need, then the cells. Must be called within an actix
    /// system; blocks while a model loads.
    ///
    /// # Errors
    /// When an engine or an agent cannot be constructed, with its key in the configuration.
    pub fn start(settings: Settings) -> Result<Self, AppError> {
        let resources = resources::resources(&settings, None)?;
        Self::with_resources(settings, resources)
    }

    /// Like [`App::start`], for a single run with these tasks: its engines need room for its
    /// trajectories only.
    ///
    /// # Errors
    /// Like [`App::start`].
    pub fn start_for_one_run(settings: Settings, tasks: OwnTasks) -> Result<Self, AppError> {
        let mut resources = resources::resources(&settings, Some(settings.run.fanout))?;
        (resources.tasks, resources.programs) = (tasks.tasks, tasks.programs);
        Self::with_resources(settings, resources)
    }

    /// Starts the cells on running engines, which several configurations can share. Must be called
    /// within an actix system.
    ///
    /// # Errors
    /// When an agent cannot be constructed.
    pub fn with_resources(settings: Settings, resources: Resources) -> Result<Self, AppError> {
        let agents = Self::configured_agents(&settings, &resources)?;
        if resources.tasks.names().is_empty() {
            resources.tasks.configure(&settings.tasks, &resources.programs);
        }
        resources.tasks.limit_uploads(uploaded_limits(&settings.uploads));
        Ok(Self::assemble(settings, resources, agents, None))
    }

    /// Takes over a runtime if the settings ask for the same one.
    fn assemble(
        settings: Settings,
        resources: Resources,
        agents: AgentSet,
        running: Option<&Arc<Runtime>>,
    ) -> Self {
        let (agents, plan) = (AgentSets::new(agents), runtime_plan(&settings));
        let configured = Arc::clone(agents.configured());

        // Runs of all configurations share the cells, as long as these stay the same.
        let runtime = match running.filter(|runtime| *runtime.plan() == plan) {
            Some(running) => {
                running.replace_agents(configured);
                Arc::clone(running)
            }
            None => Arc::new(Runtime::start(&plan, configured)),
        };

        Self { config_hash: settings.hash(), settings, resources, agents, runtime }
    }

    fn configured_agents(settings: &Settings, resources: &Resources) -> Result<AgentSet, AppError> {
        let agents = AgentSet::from_settings(settings, resources)?;
        let compared = &settings.agents.split;
        if !compared.other.is_empty() {
            // A mistake in the other agent must show now, not at the first run on that side.
            let mut other = Overrides::default();
            other.choose(compared.role, &compared.other);
            AgentSet::from_settings(&other.apply(settings), resources)?;
        }

        Ok(agents)
    }

    /// Starts the cells with the given agents, in place of the configured ones and under their
    /// names. Starts no engine. Must be called within an actix system.
    pub fn with_agents(settings: Settings, agents: AgentSet) -> Self {
        let resources = resources::new(BTreeMap::new(), Pools::default());
        Self::assemble(settings, resources, agents, None)
    }

    /// The same process with other settings, for future runs. An engine is kept if its entry has
    /// not changed; otherwise a new one is started beside it, which blocks while its model loads.
    /// Must be called within an actix system.
    ///
    /// # Errors
    /// Like [`App::start`].
    pub fn with_settings(&self, settings: Settings) -> Result<Self, AppError> {
        // The configured engines come last: if both exist, a name means the configured one.
        let mut running = self.agents.engines();
        running.extend(running_of(&self.settings, &self.resources));

        let mut resources =
            resources::renewed(&settings, &running, self.resources.pools.clone(), None)?;
        resources.programs.clone_from(&self.resources.programs);
        resources.tasks.clone_from(&self.resources.tasks);

        let agents = Self::configured_agents(&settings, &resources)?;
        // The reload may have removed what killed a worker.
        running.values().for_each(|running| running.engine.restart());
        // This comes last: nothing can fail any more.
        resources.tasks.configure(&settings.tasks, &resources.programs);
        resources.tasks.limit_uploads(uploaded_limits(&settings.uploads));

        Ok(Self::assemble(settings, resources, agents, Some(&self.runtime)))
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The SHA-256 of the configured agents' adapters, by path, as new runs use them.
    pub fn adapter_digests(&self) -> &BTreeMap<String, String> {
        &self.resources.adapter_digests
    }

    /// The hash of these settings, which records and results name.
    pub fn config_hash(&self) -> &str {
        &self.config_hash
    }

    /// The cells that execute the runs of all configurations.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The configured agents.
    pub fn agents(&self) -> &Arc<AgentSet> {
        self.agents.configured()
    }

    /// The configured agents with these overrides.
    ///
    /// # Errors
    /// When an agent cannot be built, such as `llama` without a started engine.
    pub fn agents_with(&self, overrides: &Overrides) -> Result<Arc<AgentSet>, RegistryError> {
        self.agents.chosen(overrides, &self.settings, &self.resources)
    }

    /// Checks that an agent can be built, without building it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check_usable(&self, role: Role, name: &str) -> Result<(), RegistryError> {
        prime_agent_set::check_usable(&self.settings, &self.resources, role, name)
    }

    /// The agents of these names in the present configuration.
    ///
    /// # Errors
    /// When there is no such agent, or it cannot be built.
    pub(crate) fn agents_named(&self, names: &Names) -> Result<Arc<AgentSet>, RegistryError> {
        if names == self.agents().names() {
            Ok(Arc::clone(self.agents()))
        } else {
            self.agents_with(&names.into())
        }
    }

    /// The record of a run of these agents and this task; `None` for custom agents.
    pub(crate) fn record_for(&self, agents: &AgentSet, task: &str) -> Option<Arc<RecordedAgents>> {
        self.agents.record_for(agents, task, &self.settings.engines)
    }

    /// The recorded agents of a run of this task, if it is known already whether they can be built.
    pub(crate) fn known_agents(
        &self,
        record: &Arc<RecordedAgents>,
        task: &str,
    ) -> Option<Result<Arc<AgentSet>, AgentMissing>> {
        self.agents.known(record, task, &self.settings.engines)
    }

    /// The recorded agents of a run of this task, whatever the configuration names. Starts the
    /// engines that they need and that do not run yet. Must be called within an actix system;
    /// blocks while a model loads.
    ///
    /// # Errors
    /// Which agent this process cannot build, and what to do.
    pub(crate) fn recorded_agents(
        &self,
        record: &Arc<RecordedAgents>,
        task: &str,
    ) -> Result<Arc<AgentSet>, AgentMissing> {
        self.agents.restored(record, task, &self.settings, &self.resources)
    }

    /// Agents of their own for one turn, with a tap on their models: those of a record, or the
    /// configured ones with these overrides. Must be called within an actix system; blocks while a
    /// model loads.
    ///
    /// # Errors
    /// Which agent cannot be built, and why.
    pub fn tapped_agents(
        &self,
        record: Option<&Arc<RecordedAgents>>,
        overrides: &Overrides,
        tap: Arc<dyn Tap>,
    ) -> Result<AgentSet, String> {
        let resources = Resources { tap: Some(tap), ..self.resources.clone() };
        match record {
            Some(record) => self
                .agents
                .build(record, &self.settings, &resources)
                .map_err(|missing| missing.to_string()),
            None => AgentSet::from_settings(&overrides.apply(&self.settings), &resources)
                .map_err(|error| error.to_string()),
        }
    }

    /// Which of these needs of runs ([`RecordedAgents::needs`]) this process meets; also its pools,
    /// and the engines of its agents. Blocks while it reads models that no engine has loaded.
    pub fn needs_met(&self, asked: &[String]) -> Vec<String> {
        let started = self.agents.engines();
        let digest_of = |name: &str| {
            let known = if self.resources.engines.contains_key(name) {
                self.resources.model_digests.get(name)
            } else if let Some(running) = started.get(name) {
                running.digest.as_ref()
            } else {
                return self.agents.digest_of_model(name, self.settings.engines.get(name)?);
            };
            known.cloned()
        };
        // This process also reports what it has without being asked, so that it is known before a
        // run needs it.
        let own = self
            .resources
            .model_digests
            .iter()
            .map(|(name, digest)| engine_need(name, Some(digest)));
        let asked: Vec<_> = asked.iter().cloned().chain(own).collect();

        needs_met(&asked, &self.settings, &self.resources.environment, digest_of)
    }

    /// Checks that a server of each pool and a process of each program of the agents answers.
    ///
    /// # Errors
    /// The first that does not, and why.
    pub async fn check_agents(&self) -> Result<(), String> {
        check_agents(&self.resources).await
    }

    /// The configured tasks that are programs.
    pub fn tasks(&self) -> &TaskPrograms {
        &self.resources.tasks
    }

    /// The pools of model servers in use.
    pub fn pools(&self) -> &Pools {
        &self.resources.pools
    }

    /// Agents that block their thread.
    pub fn hangs(&self) -> Hangs {
        self.runtime.hangs()
    }

    /// The contexts of the running engines, by name: that of the engine, with those of its
    /// adapters.
    pub fn engines(&self) -> BTreeMap<String, Engine> {
        let recorded = self.agents.engines().into_values().map(|running| running.engine);
        let all = recorded.chain(self.resources.engines.values().cloned());
        // Contexts of one worker list each other; an engine that was shut down lists none.
        let contexts = all.flat_map(|engine| engine.contexts().into_iter().chain([engine]));
        contexts.map(|engine| (engine.status().name, engine)).collect()
    }

    /// Why a run of these agents could not continue at present, if one of their engines is out of
    /// service.
    pub(crate) fn lost_engine(&self, agents: &RecordedAgents) -> Option<AppError> {
        let lost = |engine: &Engine| {
            let spec = engine.spec();
            let applies = |path: &Path| {
                let recorded = path.to_str().and_then(|path| agents.adapters.get(path));
                spec.adapters
                    .iter()
                    .any(|known| known.path == path && known.digest.as_ref() == recorded)
            };
            let is_asked = agents.engines.contains_key(&spec.name)
                && spec.adapters.iter().all(|adapter| applies(&adapter.path));
            let reason = engine.status().failure.filter(|_| is_asked)?;
            Some(AppError::Engine { engine: engine.status().name, reason })
        };
        self.engines().values().find_map(lost)
    }

    /// The configured plan of a run.
    pub fn plan(&self, problem: &dyn Problem) -> RunPlan {
        run_plan(&self.settings, self.agents().basis(problem), problem)
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
        let submission = Submission { problem, plan, sampling, observer, suspended: None };
        self.runtime.submit_with(self.agents().clone(), submission)
    }

    /// Stops the engines and ends the programs of agents; runs in progress fail.
    pub fn shutdown(&self) {
        self.resources.programs.end();
        self.engines().values().for_each(Engine::shutdown);
    }
}
