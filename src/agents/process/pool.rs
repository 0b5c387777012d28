//! The processes of a program, driven by a thread of their own, so that no end of an actor's thread touches them.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use futures::future::join_all;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::PROTOCOL_VERSION;
use super::child::Launch;
use super::fault::ProcessError;
use super::slot::{Job, Slot};
use crate::agents::{AgentError, Failure};
use crate::settings::Program;
use prime_protocol::Role;

/// What every program gets of the environment.
const ENVIRONMENT: [&str; 2] = ["PATH", "LANG"];

/// Processes that take turns. Dropping it ends them, and waits until they have ended.
pub(super) struct ProcessPool {
    agent: Arc<str>,
    next_id: AtomicU64,
    /// As many permits as there are slots without a turn.
    free: Semaphore,
    /// The slots without a turn, the one that has been so longest first.
    idle: Mutex<VecDeque<usize>>,
    slots: Vec<mpsc::UnboundedSender<Job>>,
    /// Both are taken when the pool is dropped.
    stop: Option<watch::Sender<()>>,
    driver: Option<JoinHandle<()>>,
}

/// A slot for one turn. It goes back when the turn is over or given up.
struct Taken<'p> {
    pool: &'p ProcessPool,
    slot: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.slot);
        self.pool.free.add_permits(1);
    }
}

impl ProcessPool {
    /// Starts the processes, and does not wait for them: one that cannot be started is an error of the turn that needs it.
    pub fn start(role: Role, name: &str, program: &Program) -> Result<Self, ProcessError> {
        let agent: Arc<str> = format!("{role} `{name}`").into();
        if program.command.is_empty() {
            return Err(ProcessError::NoCommand { agent: agent.to_string() });
        }
        let launch = Arc::new(Launch {
            agent: Arc::clone(&agent),
            command: program.command.clone(),
            environment: environment(&agent, program),
            line_bytes_max: program.line_bytes_max,
            hello: format!("{}\n", json!({"prime": PROTOCOL_VERSION, "role": role, "name": name})).into_bytes(),
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
            agent,
            next_id: AtomicU64::new(1),
            free: Semaphore::new(count),
            idle: Mutex::new((0..count).collect()),
            slots: senders,
            stop: Some(stop),
            driver: Some(driver),
        })
    }

    /// Waits for a process and asks it for the line that answers a request, which is made with its `id` then. Given up
    /// before, it leaves the queue; after, the process is killed and started again.
    pub async fn ask(&self, request: impl FnOnce(u64) -> Vec<u8> + Send) -> Result<Vec<u8>, AgentError> {
        self.free.acquire().await.expect("invariant: the semaphore is never closed").forget();
        let slot = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let taken = Taken { pool: self, slot: slot.expect("invariant: there are no more permits than idle slots") };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answered) = oneshot::channel();
        let job = Job { id, request: request(id), reply };
        // Without a receiver the job is dropped, and the wait for its answer says so.
        drop(self.slots[taken.slot].send(job));
        let lost = |_| Err(self.error(Failure::Panicked, "the thread that drives its processes ended"));
        answered.await.unwrap_or_else(lost)
    }

    pub fn error(&self, failure: Failure, reason: impl Into<String>) -> AgentError {
        AgentError::new(&*self.agent, failure, reason)
    }
}

impl Drop for ProcessPool {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(driver) = self.driver.take() {
            // A panic of the thread was reported when it happened.
            drop(driver.join());
        }
    }
}

/// The environment that a program gets: what everyone gets, and what is named.
fn environment(agent: &str, program: &Program) -> Vec<(String, std::ffi::OsString)> {
    let named = program.pass_env.iter().map(String::as_str);
    let mut environment = Vec::new();
    for name in ENVIRONMENT.into_iter().chain(named) {
        match std::env::var_os(name) {
            Some(value) => environment.push((name.to_owned(), value)),
            None => tracing::debug!(agent, "the environment variable {name} is not set, and not passed on"),
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
