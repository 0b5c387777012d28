//! The agents of runs: those that the configuration names, those that a request chooses, and those
//! that a run was accepted with. Never another agent under the recorded name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::overrides::Overrides;
use super::resources::{self, RunningEngine, first_adapters, model_file, start_engine_of};
use prime_agent_set::registry::RegistryError;
use prime_agent_set::{
    AgentMissing, AgentSet, RecordedAgents, Resources, configured_names, model_digest,
};
use prime_engine::Engine;
use prime_settings::{Engine as EngineEntry, Settings};

/// Maximum number of sets of each origin that are kept besides the configured one; the oldest is
/// dropped.
const SETS_MAX: usize = 16;

/// The sets of agents of this process.
pub struct AgentSets {
    configured: Arc<AgentSet>,
    others: Mutex<Others>,
    /// The records of runs of these agents, newest last: all runs of a task share one.
    for_tasks: Mutex<Vec<Arc<RecordedAgents>>>,
    /// Held while a recorded set is built, which may take as long as loading a model.
    building: Mutex<()>,
    /// Engines that were started for recorded sets, or could not be.
    started: Mutex<Started>,
    /// The SHA-256 of models that no engine has loaded, if they were asked for.
    digests: Mutex<BTreeMap<String, Option<String>>>,
}

type Started = BTreeMap<String, Result<RunningEngine, String>>;

/// The agents of a record, or which of them is missing.
type Built = Result<Arc<AgentSet>, AgentMissing>;

#[derive(Default)]

struct Others {
    /// Sets that requests chose from the settings of this process, newest last.
    chosen: Vec<Arc<AgentSet>>,
    /// Sets built from the records of runs, newest last. A record that cannot be used is not tried
    /// again before the next reload.
    recorded: Vec<(Arc<RecordedAgents>, Built)>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an entry, and drops the oldest one if there are too many.
fn keep<T>(entries: &mut Vec<T>, entry: T) {
    if entries.len() == SETS_MAX {
        entries.remove(0);
    }
    entries.push(entry);
}

/// Returns whether two records are the same. Most often they are one allocation.
fn is_same(one: &Arc<RecordedAgents>, other: &Arc<RecordedAgents>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

impl AgentSets {
    pub fn new(configured: AgentSet) -> Self {
        Self {
            configured: Arc::new(configured),
            others: Mutex::default(),
            for_tasks: Mutex::default(),
            building: Mutex::default(),
            started: Mutex::default(),
            digests: Mutex::default(),
        }
    }

    pub fn configured(&self) -> &Arc<AgentSet> {
        &self.configured
    }

    /// The configured agents with these overrides.
    ///
    /// # Errors
    /// When an agent cannot be built.
    pub fn chosen(
        &self,
        overrides: &Overrides,
        settings: &Settings,
        resources: &Resources,
    ) -> Result<Arc<AgentSet>, RegistryError> {
        let settings = overrides.apply(settings);
        let names = configured_names(&settings);
        if names == *self.configured.names() {
            return Ok(Arc::clone(&self.configured));
        }

        if let Some(known) =
            locked(&self.others).chosen.iter().find(|agents| *agents.names() == names)
        {
            return Ok(Arc::clone(known));
        }
        // The lock is not held, because building may take long. Two requests may build the same
        // set.
        let agents = Arc::new(AgentSet::from_settings(&settings, resources)?);
        keep(&mut locked(&self.others).chosen, Arc::clone(&agents));
        Ok(agents)
    }

    /// The record of a run of these agents and this task.
    pub fn record_for(
        &self,
        agents: &AgentSet,
        task: &str,
        engines: &BTreeMap<String, EngineEntry>,
    ) -> Option<Arc<RecordedAgents>> {
        let record = agents.recorded()?.for_task(task, engines);
        let mut known = locked(&self.for_tasks);
        if let Some(same) = known.iter().find(|known| ***known == record) {
            return Some(Arc::clone(same));
        }

        let record = Arc::new(record);
        keep(&mut known, Arc::clone(&record));
        Some(record)
    }

    /// The agents of the record of a run of this task, if they are built already or known to be
    /// missing.
    pub fn known(
        &self,
        record: &Arc<RecordedAgents>,
        task: &str,
        engines: &BTreeMap<String, EngineEntry>,
    ) -> Option<Built> {
        let is_it = |agents: &&Arc<AgentSet>| {
            self.record_for(agents, task, engines).is_some_and(|own| is_same(&own, record))
        };

        let others = locked(&self.others);
        if let Some(agents) = std::iter::once(&self.configured).chain(&others.chosen).find(is_it) {
            return Some(Ok(Arc::clone(agents)));
        }

        others
            .recorded
            .iter()
            .find(|(known, _)| is_same(known, record))
            .map(|(_, built)| built.clone())
    }

    /// The agents of a record. Starts the engines that they need and that do not run yet.
    ///
    /// # Errors
    /// Which agent is missing, and what to do.
    pub fn restored(
        &self,
        record: &Arc<RecordedAgents>,
        task: &str,
        present: &Settings,
        resources: &Resources,
    ) -> Result<Arc<AgentSet>, AgentMissing> {
        // One at a time: two runs of one record must not both load its model.
        let _building = locked(&self.building);
        if let Some(known) = self.known(record, task, &present.engines) {
            return known;
        }

        let built = self.build(record, present, resources).map(Arc::new);
        keep(&mut locked(&self.others).recorded, (Arc::clone(record), built.clone()));
        built
    }

    /// Builds the agents of a record. Starts the engines that they need and that do not run yet.
    ///
    /// # Errors
    /// Which agent is missing, and what to do.
    pub fn build(
        &self,
        record: &Arc<RecordedAgents>,
        present: &Settings,
        resources: &Resources,
    ) -> Result<AgentSet, AgentMissing> {
        let settings = record.restore(present, &resources.environment)?;

        let mut resources = resources.clone();
        resources.adapter_digests.extend(record.adapters.clone());
        for name in settings.engines_needed() {
            let (engine, digest) = engine_of(&name, record, &settings, &resources, &self.started)?;
            resources.model_digests.extend(digest.map(|digest| (name.clone(), digest)));
            resources.engines.insert(name, engine);
        }

        let agents = AgentSet::from_settings(&settings, &resources);
        Ok(agents
            .map_err(|error| AgentMissing::Unusable(error.to_string()))?
            .with_record(Arc::clone(record)))
    }

    /// The SHA-256 of the model of a configured engine that does not run; `None` if it cannot be
    /// read. Reads the file once.
    pub fn digest_of_model(&self, name: &str, entry: &EngineEntry) -> Option<String> {
        if let Some(known) = locked(&self.digests).get(name) {
            return known.clone();
        }
        // The lock is not held: a large model takes seconds to read.
        let digest = model_file(name, entry).ok().and_then(|model| model_digest(&model).ok());
        locked(&self.digests).insert(name.to_owned(), digest.clone());
        digest
    }

    /// The engines that were started for the agents of records.
    pub fn engines(&self) -> resources::Running {
        let started = locked(&self.started);
        let running = started
            .iter()
            .filter_map(|(name, engine)| Some((name.clone(), engine.as_ref().ok()?.clone())));
        running.collect()
    }
}

/// The engine of this name with the recorded model, and the digest of the model. Starts the engine
/// if it does not run.
fn engine_of(
    name: &str,
    record: &RecordedAgents,
    settings: &Settings,
    resources: &Resources,
    started: &Mutex<Started>,
) -> Result<(Engine, Option<String>), AgentMissing> {
    let wanted = record.engines.get(name).and_then(Option::as_ref);
    let is_wanted = |digest: Option<&String>| wanted.is_none() || digest == wanted;
    // The engine that the configuration has started.
    if let Some(engine) = resources.engines.get(name) {
        let digest = resources.model_digests.get(name);
        if !is_wanted(digest) {
            return Err(record.other_model(name, digest.map(String::as_str)));
        }
        return Ok((engine.clone(), digest.cloned()));
    }

    // One that an earlier record started, or failed to start.
    let known = locked(started).get(name).cloned();
    let engine = if let Some(known) = known {
        known
    } else {
        let entry =
            settings.engines.get(name).expect("invariant: restored settings name existing engines");

        let unusable = |reason: String| record.engine_missing(name, reason);
        // Checked before it is loaded: a wrong model would cost its memory for nothing.
        let model = model_file(name, entry).map_err(|error| unusable(error.to_string()))?;
        let digest = model_digest(&model)
            .map_err(|error| unusable(format!("{}: {error}", model.display())))?;
        if !is_wanted(Some(&digest)) {
            return Err(record.other_model(name, Some(&digest)));
        }

        tracing::info!(engine = name, "starting an engine for a run that was accepted with it");
        let adapters = first_adapters(settings, &record.adapters)
            .map(|mut first| first.remove(name).unwrap_or_default());
        let engine = adapters
            .and_then(|adapters| start_engine_of(name, entry, Some(digest), adapters, None))
            .map_err(|error| error.to_string());
        locked(started).insert(name.to_owned(), engine.clone());
        engine
    };

    match engine {
        Ok(running) if is_wanted(running.digest.as_ref()) => Ok((running.engine, running.digest)),
        Ok(running) => Err(record.other_model(name, running.digest.as_deref())),
        Err(reason) => Err(record.engine_missing(name, reason)),
    }
}
