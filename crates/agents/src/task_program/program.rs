//! Programs and modules that compute tasks, by the names under which runs ask for them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures::executor::block_on;
use serde_json::Value;
use tokio::time::Instant;

use super::computer::Computer;
use super::declaration;
use super::error::OpenError;
use super::limits::{INPUT_BYTES_MAX, MODULE_BYTES_MAX};
use super::module::{ModuleLimits, ModulePool};
use super::problem::Asking;
use super::startup::Startup;
use crate::process::ProcessPool;
use crate::programs::Programs;
use crate::{AgentError, Failure};
use prime_bench::tasks::{Problem, Spec};
use prime_settings::OwnTask;

/// A program or a module that computes a task. It is started when it is first asked.
pub struct TaskProgram {
    /// The name in the configuration; `None` for one from the command line, whose task has the name
    /// that it declares.
    name: Option<String>,
    task: OwnTask,
    programs: Programs,
    pool: OnceLock<Result<Computer, AgentError>>,
    startup: Arc<Startup>,
}

impl TaskProgram {
    /// A task with this name, or the one that it declares. A program ends with `programs`.
    pub fn new(name: Option<&str>, task: OwnTask, programs: Programs) -> Self {
        Self {
            name: name.map(str::to_owned),
            task,
            programs,
            pool: OnceLock::new(),
            startup: Arc::default(),
        }
    }

    fn pool(&self) -> Result<Computer, AgentError> {
        let start = || {
            let name = self.name.as_deref().unwrap_or("task");
            match &self.task.module {
                None => self.program(name),
                Some(module) => self.module(name, module),
            }
        };
        self.pool.get_or_init(start).clone()
    }

    fn program(&self, name: &str) -> Result<Computer, AgentError> {
        match ProcessPool::start_task(name, &self.task.program()) {
            Ok(pool) => {
                let pool = Arc::new(pool);
                self.programs.add(&pool);
                Ok(Computer::Program(pool))
            }
            Err(error) => Err(AgentError::new("task", Failure::Refused, error.to_string())),
        }
    }

    fn module(&self, name: &str, module: &str) -> Result<Computer, AgentError> {
        let OwnTask { fuel_max, memory_bytes_max, line_bytes_max, processes, .. } = &self.task;
        let unreadable = |error: &dyn std::fmt::Display| {
            let reason = format!("{module} cannot be read: {error}");
            AgentError::new(format!("task `{name}`"), Failure::Refused, reason)
        };

        // First, because opening a pipe would wait for its writer.
        let metadata = std::fs::metadata(module).map_err(|error| unreadable(&error))?;
        if !metadata.is_file() {
            return Err(unreadable(&"it is not a regular file"));
        }
        // A byte more than is allowed shows that it is too large; a device never ends.
        let file = File::open(module).map_err(|error| unreadable(&error))?;
        let mut bytes = Vec::new();
        let most = MODULE_BYTES_MAX as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;

        let limits = ModuleLimits {
            fuel_max: *fuel_max,
            memory_bytes_max: *memory_bytes_max,
            line_bytes_max: *line_bytes_max,
            threads: *processes,
        };
        Ok(Computer::Module(Arc::new(ModulePool::start(name, &bytes, limits)?)))
    }

    fn spec_of(name: Option<&str>, pool: &Computer) -> Result<&'static Spec, AgentError> {
        let missing = || pool.error(Failure::Refused, "it has not declared its task");
        let declared = pool.declared().ok_or_else(missing)?;
        let bad = |fault| {
            pool.error(Failure::Refused, format!("what it declares of its task is wrong: {fault}"))
        };
        let slug = match name {
            Some(name) => name.to_owned(),
            None => declaration::name_of(declared).map_err(bad)?,
        };
        declaration::spec(&slug, declared).map_err(bad)
    }

    /// What computes the task, if it has declared it; or why it never will.
    fn declared(&self) -> Option<Result<Computer, AgentError>> {
        let pool = self.pool.get()?;
        let is_settled = pool.as_ref().map_or(true, |pool| pool.declared().is_some());
        is_settled.then(|| pool.clone())
    }

    /// Starts the program or the module, unless it has declared its task. Does not wait for it: a
    /// module may take its time, too.
    fn begin(self: &Arc<Self>) {
        if self.declared().is_none() {
            let this = Arc::clone(self);
            self.startup.begin(async move { this.pool()?.ready().await });
        }
    }

    /// After this, a start that is under way has failed.
    fn start_timeout(&self) -> Duration {
        2 * Duration::from_millis(self.task.program().start_timeout_ms)
    }

    /// What computes the task, once it has declared it.
    fn started(self: &Arc<Self>, until: Instant) -> Result<Computer, AgentError> {
        self.begin();
        if self.declared().is_none() && !self.startup.wait(until)? {
            let name = self.name.as_deref().unwrap_or("task");
            let reason = "it has not answered the handshake yet";
            return Err(AgentError::new(format!("task `{name}`"), Failure::Timeout, reason));
        }
        self.pool()
    }

    pub(super) fn task(&self) -> &OwnTask {
        &self.task
    }

    /// The JSON that it declares of its task. Blocks until a process has answered the handshake.
    ///
    /// # Errors
    /// It cannot be started, or its declaration cannot be used.
    pub(super) fn declaration(self: &Arc<Self>) -> Result<Value, AgentError> {
        let pool = self.started(Instant::now() + self.start_timeout())?;
        Self::spec_of(self.name.as_deref(), &pool)?;
        let missing = || pool.error(Failure::Refused, "it has not declared its task");
        pool.declared().cloned().ok_or_else(missing)
    }

    /// What the program declares of its task. Blocks until a process has answered the handshake, or
    /// for this long.
    ///
    /// # Errors
    /// It cannot be started, has not answered yet, or its declaration cannot be used.
    pub fn spec(self: &Arc<Self>, wait: Duration) -> Result<&'static Spec, AgentError> {
        let pool = self.started(Instant::now() + wait)?;
        Self::spec_of(self.name.as_deref(), &pool)
    }

    /// The instance with this input. Blocks while the program answers.
    ///
    /// # Errors
    /// It refuses the input, or cannot be asked.
    pub fn open(self: &Arc<Self>, input: &Value) -> Result<Arc<dyn Problem>, OpenError> {
        let pool = self.started(Instant::now() + self.start_timeout())?;
        let bytes = input.to_string().len();
        if bytes > INPUT_BYTES_MAX {
            let reason = format!("the input has {bytes} bytes; give at most {INPUT_BYTES_MAX}");
            return Err(AgentError::new("task", Failure::Unsupported, reason).into());
        }
        let spec = |pool: &Computer| Self::spec_of(self.name.as_deref(), pool);
        let asking = block_on(Asking::open(pool, spec, input.clone()))?;
        Ok(Arc::new(asking))
    }
}

/// The configured tasks that are programs. Clones share them.
#[derive(Clone, Default)]
pub struct TaskPrograms(Arc<RwLock<BTreeMap<String, Arc<TaskProgram>>>>);

impl TaskPrograms {
    /// Replaces the tasks. Open instances keep the processes that they have; new ones get processes
    /// that are started from now on.
    pub fn configure(&self, tasks: &BTreeMap<String, OwnTask>, programs: &Programs) {
        let task = |(name, task): (&String, &OwnTask)| {
            let task = TaskProgram::new(Some(name), task.clone(), programs.clone());
            (name.clone(), Arc::new(task))
        };
        let new = tasks.iter().map(task).collect();
        let old =
            std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), new);
        // Unlocked first: the processes of unused tasks end here.
        drop(old);
    }

    /// Adds a task.
    pub fn add(&self, name: &str, task: Arc<TaskProgram>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), task);
    }

    /// The task of this name.
    pub fn get(&self, name: &str) -> Option<Arc<TaskProgram>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// What the programs declare of their tasks, sorted by name. All are started at once; blocks
    /// until all have answered the handshake, or for this long.
    pub fn specs(&self, wait: Duration) -> Vec<(String, Result<&'static Spec, AgentError>)> {
        let until = Instant::now() + wait;
        let tasks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        for task in tasks.values() {
            task.begin();
        }
        let left = || until.saturating_duration_since(Instant::now());
        tasks.into_iter().map(|(name, task)| (name, task.spec(left()))).collect()
    }

    /// An instance of the task of this name. Blocks while its program answers.
    ///
    /// # Errors
    /// There is no such task, or as [`TaskProgram::open`].
    pub fn open(&self, name: &str, input: &Value) -> Result<Arc<dyn Problem>, OpenError> {
        let task = self.get(name);
        let unknown = || OpenError::Unknown { name: name.to_owned(), known: self.names() };
        task.ok_or_else(unknown)?.open(input)
    }
}
