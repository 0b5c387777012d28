//! The tasks that are programs or modules, by the names under which runs ask for them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::error::OpenError;
use super::program::TaskProgram;
use super::uploaded::{Compiled, ModuleStore, UploadedLimits};
use crate::AgentError;
use crate::programs::Programs;
use prime_bench::tasks::{Problem, Spec};
use prime_settings::OwnTask;

#[derive(Default)]
struct Shared {
    configured: RwLock<BTreeMap<String, Arc<TaskProgram>>>,
    uploads: OnceLock<Arc<dyn ModuleStore>>,
    compiled: Compiled,
}

/// The task that a program declares, or why the program cannot be asked.
pub type Declared = Result<&'static Spec, AgentError>;

/// The tasks that are programs or modules: those of the configuration, and the uploaded ones of one
/// owner. Clones share them.
#[derive(Clone, Default)]
pub struct TaskPrograms {
    shared: Arc<Shared>,
    owner: Option<Arc<str>>,
    /// The owner for whom questions are asked, if uploads are not looked up.
    asker: Option<Arc<str>>,
}

impl TaskPrograms {
    /// Replaces the configured tasks. Open instances keep the processes that they have; new ones
    /// get processes that are started from now on.
    pub fn configure(&self, tasks: &BTreeMap<String, OwnTask>, programs: &Programs) {
        let task = |(name, task): (&String, &OwnTask)| {
            let task = TaskProgram::new(Some(name), task.clone(), programs.clone());
            (name.clone(), Arc::new(task))
        };
        let new = tasks.iter().map(task).collect();
        let configured = &self.shared.configured;
        let old = std::mem::replace(
            &mut *configured.write().unwrap_or_else(PoisonError::into_inner),
            new,
        );
        // Unlocked first: the processes of unused tasks end here.
        drop(old);
    }

    /// Adds a task.
    pub fn add(&self, name: &str, task: Arc<TaskProgram>) {
        let configured = &self.shared.configured;
        configured.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), task);
    }

    /// Uses this store of uploaded modules from now on. Only the first call has an effect.
    pub fn find_uploads(&self, store: Arc<dyn ModuleStore>) {
        // Another store would have different modules for the same runs.
        let _ = self.shared.uploads.set(store);
    }

    /// Sets the limits of uploaded modules that are started from now on.
    pub fn limit_uploads(&self, limits: UploadedLimits) {
        self.shared.compiled.limit(limits);
    }

    /// The same tasks, and those that this owner has uploaded.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), owner: Some(owner.into()), asker: None }
    }

    /// The same tasks, with questions that count as this owner's ([`TaskProgram::open`]).
    #[must_use]
    pub fn asked_by(&self, owner: &str) -> Self {
        Self { asker: Some(owner.into()), ..self.clone() }
    }

    /// The owner that questions count for; empty if there is none.
    pub fn asker(&self) -> &str {
        self.asker.as_ref().or(self.owner.as_ref()).map_or("", |asker| asker)
    }

    fn configured(&self) -> BTreeMap<String, Arc<TaskProgram>> {
        self.shared.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if a task of this name is configured.
    pub fn is_configured(&self, name: &str) -> bool {
        let configured = &self.shared.configured;
        configured.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// The task of this name. Blocks while the uploads are read.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Arc<TaskProgram>>, AgentError> {
        let configured = self.configured().remove(name);
        if configured.is_some() {
            return Ok(configured);
        }
        let (Some(store), Some(owner)) = (self.shared.uploads.get(), &self.owner) else {
            return Ok(None);
        };
        let current = store.current(owner, name)?;
        Ok(current.map(|digest| self.shared.compiled.get(name, &digest, store)))
    }

    /// The names of the configured tasks, sorted.
    pub fn names(&self) -> Vec<String> {
        self.configured().into_keys().collect()
    }

    /// All tasks, by name. Blocks while the uploads are read.
    fn all(&self) -> Result<BTreeMap<String, Arc<TaskProgram>>, AgentError> {
        let mut all = self.configured();
        if let (Some(store), Some(owner)) = (self.shared.uploads.get(), &self.owner) {
            for (name, digest) in store.tasks(owner)? {
                let task = || self.shared.compiled.get(&name, &digest, store);
                all.entry(name.clone()).or_insert_with(task);
            }
        }
        Ok(all)
    }

    /// What the programs declare about their tasks, sorted by name. All are started at once; blocks
    /// until all have answered the handshake, or for this long.
    ///
    /// # Errors
    /// The uploads cannot be read.
    pub fn specs(&self, wait: Duration) -> Result<Vec<(String, Declared)>, AgentError> {
        let until = Instant::now() + wait;
        let tasks = self.all()?;
        for task in tasks.values() {
            task.begin();
        }
        let left = || until.saturating_duration_since(Instant::now());
        Ok(tasks.into_iter().map(|(name, task)| (name, task.spec(left()))).collect())
    }

    /// An instance of the task of this name. Blocks while its program answers.
    ///
    /// # Errors
    /// There is no such task, or as [`TaskProgram::open`].
    pub fn open(&self, name: &str, input: &Value) -> Result<Arc<dyn Problem>, OpenError> {
        let unknown = || OpenError::Unknown { name: name.to_owned(), known: self.names() };
        self.get(name)?.ok_or_else(unknown)?.open(self.asker(), input)
    }

    /// An instance of a task that is the uploaded module with this digest, under any key
    /// and any name. Blocks while the module answers.
    ///
    /// # Errors
    /// There is no such module, or as [`TaskProgram::open`].
    pub fn open_module(
        &self,
        name: &str,
        digest: &str,
        input: &Value,
    ) -> Result<Arc<dyn Problem>, OpenError> {
        let unknown = || OpenError::Unknown { name: name.to_owned(), known: self.names() };
        let store = self.shared.uploads.get().ok_or_else(unknown)?;
        self.shared.compiled.get(name, digest, store).open(self.asker(), input)
    }
}
