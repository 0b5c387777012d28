//! A program's processes, driven by a dedicated thread so that they outlive the actors' threads.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::PROTOCOL_VERSION;
use super::child::LaunchSpec;
use super::fault::ProcessError;
use super::slot::{Job, Slot};
use crate::{AgentError, Failure};
use prime_protocol::Role;
use prime_settings::Program;

/// Environment variables that every program gets.
const ENVIRONMENT: [&str; 2] = ["PATH", "LANG"];

/// The processes of a program. Dropping it terminates them and waits for them.
pub struct ProcessPool {
    launch: Arc<LaunchSpec>,
    next_id: AtomicU64,
    /// One permit for each idle slot.
    free: Semaphore,
    /// Idle slots, longest idle first.
    idle: Mutex<VecDeque<usize>>,
    slots: Vec<mpsc::UnboundedSender<Job>>,
    /// Dropping the sender stops the slots, and with them the thread. Taken when the pool is
    /// stopped.
    driver: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

/// A slot reserved for one turn; released on drop.
struct SlotPermit<'p> {
    pool: &'p ProcessPool,
    slot: usize,
}

impl Drop for SlotPermit<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.slot);
        self.pool.free.add_permits(1);
    }
}

impl ProcessPool {
    /// Starts the processes without waiting for them: one that cannot be started fails the turns
    /// that need it.
    pub fn start(role: Role, name: &str, program: &Program) -> Result<Self, ProcessError> {
        Self::start_as(role.name(), name, program, None)
    }

    /// As [`ProcessPool::start`], for a program that declares a task and computes its steps.
    pub fn start_task(name: &str, program: &Program) -> Result<Self, ProcessError> {
        Self::start_as("task", name, program, Some(OnceLock::new()))
    }

    fn start_as(
        role: &str,
        name: &str,
        program: &Program,
        declared: Option<OnceLock<Value>>,
    ) -> Result<Self, ProcessError> {
        let agent: Arc<str> = format!("{role} `{name}`").into();
        if program.command.is_empty() {
            return Err(ProcessError::NoCommand { agent: agent.to_string() });
        }

        let launch = Arc::new(LaunchSpec {
            agent: Arc::clone(&agent),
            command: program.command.clone(),
            environment: environment(&agent, program),
            line_bytes_max: program.line_bytes_max,
            hello: format!("{}\n", json!({"prime": PROTOCOL_VERSION, "role": role, "name": name}))
                .into_bytes(),
            declared,
        });

        let (stop, stopped) = watch::channel(());
        let count = program.processes.max(1) as usize;
        let (senders, slots): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (sender, jobs) = mpsc::unbounded_channel();
                (sender, Slot::new(Arc::clone(&launch), program, jobs))
            })
            .unzip();

        let driver = drive(name, slots, stopped)
            .map_err(|reason| ProcessError::NoThread { agent: agent.to_string(), reason })?;

        Ok(Self {
            launch,
            next_id: AtomicU64::new(1),
            free: Semaphore::new(count),
            idle: Mutex::new((0..count).collect()),
            slots: senders,
            driver: Mutex::new(Some((stop, driver))),
        })
    }

    /// Waits for a process, builds the request with an id, and returns the answer line. A turn that
    /// is cancelled while it waits leaves the queue; later, its process is killed and restarted.
    pub async fn ask(
        &self,
        request: impl FnOnce(u64) -> Vec<u8> + Send,
    ) -> Result<Vec<u8>, AgentError> {
        // Given back by the `SlotPermit`, whose drop also makes the slot idle.
        self.free.acquire().await.expect("invariant: the semaphore is never closed").forget();

        let slot = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let permit = SlotPermit {
            pool: self,
            slot: slot.expect("invariant: there are no more permits than idle slots"),
        };

        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answered) = oneshot::channel();
        let job = Job { id, request: request(id), reply };
        // Without a receiver the job is dropped, and awaiting the reply fails.
        drop(self.slots[permit.slot].send(job));

        let lost = |_| {
            Err(self.error(Failure::Panicked, "the thread that drives its processes has ended"))
        };
        answered.await.unwrap_or_else(lost)
    }

    /// Waits until a process has answered the handshake, at most as long as `start_timeout_ms`
    /// allows for each start.
    ///
    /// # Errors
    /// Why it cannot be started, or did not answer.
    pub async fn ready(&self) -> Result<(), AgentError> {
        self.ask(|_| Vec::new()).await.map(|_| ())
    }

    /// Begins to terminate the processes, which ends the thread; further turns fail. `None` if it
    /// was called before.
    pub fn stop(&self) -> Option<JoinHandle<()>> {
        let (_stop, driver) = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(driver)
    }

    pub fn error(&self, failure: Failure, reason: impl Into<String>) -> AgentError {
        AgentError::new(&*self.launch.agent, failure, reason)
    }

    /// What the program declares of its task, once a process is [`ProcessPool::ready`].
    pub fn declared(&self) -> Option<&Value> {
        self.launch.declared.as_ref()?.get()
    }
}

impl Drop for ProcessPool {
    fn drop(&mut self) {
        if let Some(driver) = self.stop() {
            // A panic of the thread was reported when it occurred.
            drop(driver.join());
        }
    }
}

/// A program's environment: the common variables and those in `pass_env`.
fn environment(agent: &str, program: &Program) -> Vec<(String, std::ffi::OsString)> {
    let named = program.pass_env.iter().map(String::as_str);
    let mut environment = Vec::new();
    for name in ENVIRONMENT.into_iter().chain(named) {
        match std::env::var_os(name) {
            Some(value) => environment.push((name.to_owned(), value)),
            None => tracing::debug!(agent, "environment variable {name} is not set and not passed"),
        }
    }
    environment
}

fn drive(name: &str, slots: Vec<Slot>, stopped: watch::Receiver<()>) -> io::Result<JoinHandle<()>> {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(format!("{name}-processes")).spawn(move || {
        runtime.block_on(join_all(slots.into_iter().map(|slot| slot.run(stopped.clone()))));
    })
}
