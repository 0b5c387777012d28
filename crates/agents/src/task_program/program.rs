//! A program or a module that computes a task: its start, its declaration, its instances.

use std::any::Any;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::executor::block_on;
use serde_json::Value;
use tokio::time::Instant;

use super::computer::Computer;
use super::declaration;
use super::error::OpenError;
use super::limits::{INPUT_BYTES_MAX, MODULE_BYTES_MAX};
use super::module::{ModuleLimits, ModulePool};
use super::node::bytes_of;
use super::problem::Asking;
use super::startup::Startup;
use super::uploaded::UploadedModule;
use super::workers::Workers;
use crate::process::ProcessPool;
use crate::programs::Programs;
use crate::{AgentError, Failure};
use prime_bench::tasks::{Problem, Spec};
use prime_settings::OwnTask;

/// How long an uploaded module may take to be read, compiled and asked for its declaration.
const UPLOADED_START_MAX: Duration = Duration::from_mins(1);

/// Where the program or the module comes from.
enum Source {
    /// A program ends with `programs`.
    Configured {
        task: Box<OwnTask>,
        programs: Programs,
    },
    Uploaded(UploadedModule),
}

/// A program or a module that computes a task. It is started when it is first asked; a start that
/// failed is tried again some seconds later.
pub struct TaskProgram {
    /// The name in the configuration; `None` for one from the command line, whose task has the name
    /// that it declares.
    name: Option<String>,
    source: Source,
    pool: OnceLock<Computer>,
    startup: Arc<Startup>,
}

impl TaskProgram {
    /// A task with this name, or the one that it declares. A program ends with `programs`.
    pub fn new(name: Option<&str>, task: OwnTask, programs: Programs) -> Self {
        Self::of(name, Source::Configured { task: Box::new(task), programs })
    }

    /// The task of a module that a client has uploaded under this name.
    pub(super) fn uploaded(name: &str, module: UploadedModule) -> Self {
        Self::of(Some(name), Source::Uploaded(module))
    }

    fn of(name: Option<&str>, source: Source) -> Self {
        let name = name.map(str::to_owned);
        Self { name, source, pool: OnceLock::new(), startup: Arc::default() }
    }

    fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or("task")
    }

    /// The digest of its module, if a client has uploaded it.
    pub fn uploaded_digest(&self) -> Option<&str> {
        match &self.source {
            Source::Configured { .. } => None,
            Source::Uploaded(module) => Some(&module.digest),
        }
    }

    fn pool(&self) -> Result<Computer, AgentError> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool.clone());
        }
        let started = match &self.source {
            Source::Configured { task, programs } => match &task.module {
                None => self.program(task, programs),
                Some(module) => self.module(task, module),
            },
            Source::Uploaded(module) => {
                module.start(self.shown_name()).map(|pool| Computer::Module(Arc::new(pool)))
            }
        };
        // A failure is not kept: the file may be there later.
        Ok(self
            .pool
            .get_or_init({
                let started = started?;
                || started
            })
            .clone())
    }

    fn program(&self, task: &OwnTask, programs: &Programs) -> Result<Computer, AgentError> {
        match ProcessPool::start_task(self.shown_name(), &task.program()) {
            Ok(pool) => {
                let pool = Arc::new(pool);
                programs.add(&pool);
                Ok(Computer::Program(pool))
            }
            Err(error) => Err(AgentError::new("task", Failure::Refused, error.to_string())),
        }
    }

    fn module(&self, task: &OwnTask, module: &str) -> Result<Computer, AgentError> {
        let name = self.shown_name();
        let OwnTask { fuel_max, memory_bytes_max, line_bytes_max, processes, .. } = task;
        let unreadable = |error: &dyn std::fmt::Display| {
            let reason = format!("{module} cannot be read: {error}");
            AgentError::new(format!("task `{name}`"), Failure::Refused, reason)
        };

        // This comes first, because opening a pipe would wait for its writer.
        let metadata = std::fs::metadata(module).map_err(|error| unreadable(&error))?;
        if !metadata.is_file() {
            return Err(unreadable(&"it is not a regular file"));
        }
        // One byte more than is allowed shows that the file is too large; a device never ends.
        let file = File::open(module).map_err(|error| unreadable(&error))?;
        let mut bytes = Vec::new();
        let most = MODULE_BYTES_MAX as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;

        let limits = ModuleLimits {
            fuel_max: *fuel_max,
            memory_bytes_max: *memory_bytes_max,
            line_bytes_max: *line_bytes_max,
            is_foreign: false,
        };
        let workers = Arc::new(Workers::start(name, *processes, *processes));
        Ok(Computer::Module(Arc::new(ModulePool::start(name, &bytes, limits, workers)?)))
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

    /// True if it has declared its task.
    fn is_declared(&self) -> bool {
        self.pool.get().is_some_and(|pool| pool.declared().is_some())
    }

    /// Starts the program or the module, unless it has declared its task. Does not wait for it: a
    /// module may take its time, too.
    pub(super) fn begin(self: &Arc<Self>) {
        if !self.is_declared() {
            let this = Arc::clone(self);
            self.startup.begin(async move { this.pool()?.ready().await });
        }
    }

    /// The time after which a start in progress has failed.
    fn start_timeout(&self) -> Duration {
        match &self.source {
            Source::Configured { task, .. } => {
                2 * Duration::from_millis(task.program().start_timeout_ms)
            }
            Source::Uploaded(_) => UPLOADED_START_MAX,
        }
    }

    /// What computes the task, once it has declared it.
    fn started(self: &Arc<Self>, until: Instant) -> Result<Computer, AgentError> {
        self.begin();
        if !self.is_declared() && !self.startup.wait(until)? {
            let name = format!("task `{}`", self.shown_name());
            let reason = "it has not answered the handshake yet";
            return Err(AgentError::new(name, Failure::Timeout, reason));
        }
        self.pool()
    }

    /// The task's section in the configuration; `None` for a module that a client has uploaded.
    pub(super) fn configured(&self) -> Option<&OwnTask> {
        match &self.source {
            Source::Configured { task, .. } => Some(task),
            Source::Uploaded(_) => None,
        }
    }

    /// The JSON with which it declares its task. Blocks until a process has answered the handshake.
    ///
    /// # Errors
    /// It cannot be started, or its declaration cannot be used.
    pub(super) fn declaration(self: &Arc<Self>) -> Result<Value, AgentError> {
        let pool = self.started(Instant::now() + self.start_timeout())?;
        Self::spec_of(self.name.as_deref(), &pool)?;
        let missing = || pool.error(Failure::Refused, "it has not declared its task");
        pool.declared().cloned().ok_or_else(missing)
    }

    /// What the program declares about its task. Blocks until a process has answered the handshake,
    /// at most for `wait`.
    ///
    /// # Errors
    /// It cannot be started, has not answered yet, or its declaration cannot be used.
    pub fn spec(self: &Arc<Self>, wait: Duration) -> Result<&'static Spec, AgentError> {
        let pool = self.started(Instant::now() + wait)?;
        Self::spec_of(self.name.as_deref(), &pool)
    }

    /// The instance with this input, whose questions count as this owner's: owners are answered in
    /// turn. Blocks while the program answers.
    ///
    /// # Errors
    /// It refuses the input, or cannot be asked.
    pub fn open(
        self: &Arc<Self>,
        owner: &str,
        input: &Value,
    ) -> Result<Arc<dyn Problem>, OpenError> {
        let pool = self.started(Instant::now() + self.start_timeout())?;
        let bytes = bytes_of(input);
        if bytes > INPUT_BYTES_MAX {
            let reason = format!("the input has {bytes} bytes; give at most {INPUT_BYTES_MAX}");
            return Err(AgentError::new("task", Failure::Unsupported, reason).into());
        }
        let spec = |pool: &Computer| Self::spec_of(self.name.as_deref(), pool);
        let program = Arc::clone(self) as Arc<dyn Any + Send + Sync>;
        let asking = block_on(Asking::open((pool, owner.into()), spec, input.clone(), program))?;
        Ok(Arc::new(asking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_was_missing_is_taken_when_it_is_there() {
        let hello = r#"{"prime":1,"task":{"name":"one","statement":"Count."}}"#;
        let text = format!(
            r#"(module (memory (export "memory") 1) (data (i32.const 0) "{}")
                (func (export "alloc") (param i32) (result i32) (i32.const 1024))
                (func (export "answer") (param i32 i32) (result i64) (i64.const {})))"#,
            hello.replace('"', "\\22"),
            hello.len()
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("one.wasm");
        let module = Some(path.to_str().expect("a plain name").to_owned());
        let task = OwnTask { module, ..OwnTask::default() };
        let task = TaskProgram::new(Some("one"), task, Programs::default());

        let missing = task.pool().err().expect("missing").to_string();
        assert!(missing.contains("one.wasm cannot be read"), "{missing}");
        std::fs::write(&path, wat::parse_str(text).expect("WebAssembly text")).expect("written");
        let pool = task.pool().expect("there");
        assert_eq!(pool.declared().expect("declared")["statement"], "Count.");
    }
}
