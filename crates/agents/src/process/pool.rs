//! A program's processes, driven by a dedicated thread so that they outlive the actors' threads.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};

use super::PROTOCOL_VERSION;
use super::child::LaunchSpec;
use super::fault::ProcessError;
use super::slot::{Job, Slot};
use crate::{AgentError, Failure, FairQueue};
use prime_protocol::Role;
use prime_settings::Program;

/// Environment variables that every program gets.
const ENVIRONMENT: [&str; 2] = ["PATH", "LANG"];

/// The processes of a program. Dropping it terminates them and waits for them.
pub struct ProcessPool {
    launch: Arc<LaunchSpec>,
    next_id: AtomicU64,
    turns: Arc<Turns>,
    /// The owner of turns that have none.
    nobody: Arc<str>,
    slots: Vec<mpsc::UnboundedSender<Job>>,
    /// Dropping the sender stops the slots, and with them the thread. Taken when the pool is
    /// stopped.
    driver: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

/// Which slots are idle, and which turns wait for one. Never both: while a turn waits, no slot is
/// idle.
struct Turns(Mutex<Queue>);

struct Queue {
    /// Longest idle first.
    idle: VecDeque<usize>,
    waiting: FairQueue<(), oneshot::Sender<SlotPermit>>,
}

/// A slot reserved for one turn; released on drop.
struct SlotPermit {
    turns: Arc<Turns>,
    owner: Arc<str>,
    slot: usize,
}

impl Turns {
    fn new(slots: usize) -> Arc<Self> {
        // Calls have a time limit, so that it is enough if owners take turns.
        let waiting = FairQueue::new(slots);
        Arc::new(Self(Mutex::new(Queue { idle: (0..slots).collect(), waiting })))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. A turn that is cancelled meanwhile loses its place.
    async fn slot(self: &Arc<Self>, owner: &Arc<str>) -> SlotPermit {
        let (permit, permitted) = oneshot::channel();
        self.queue().waiting.push(owner, (), permit);
        self.hand_out();
        permitted.await.expect("invariant: who waits is in the queue until it gets a slot")
    }

    /// Gives the idle slots to the turns that wait.
    fn hand_out(self: &Arc<Self>) {
        while let Some((turn, permit)) = self.next() {
            // The lock is released first: if the turn no longer waits, the permit is dropped here
            // and goes to another turn.
            drop(turn.send(permit));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<SlotPermit>, SlotPermit)> {
        let mut queue = self.queue();
        let slot = queue.idle.pop_front()?;
        while let Some((owner, turn)) = queue.waiting.take() {
            if !turn.is_closed() {
                return Some((turn, SlotPermit { turns: Arc::clone(self), owner, slot }));
            }
            queue.waiting.done(&owner);
        }
        queue.idle.push_front(slot);
        None
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        let mut queue = self.turns.queue();
        queue.idle.push_back(self.slot);
        queue.waiting.done(&self.owner);
        drop(queue);
        self.turns.hand_out();
    }
}

impl ProcessPool {
    /// Starts the processes without waiting for them: one that cannot be started fails the turns
    /// that need it.
    pub fn start(role: Role, name: &str, program: &Program) -> Result<Self, ProcessError> {
        Self::start_as(role.name(), name, program, None)
    }

    /// Like [`ProcessPool::start`], for a program that declares a task and computes its steps.
    pub(crate) fn start_task(name: &str, program: &Program) -> Result<Self, ProcessError> {
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
            turns: Turns::new(count),
            nobody: "".into(),
            slots: senders,
            driver: Mutex::new(Some((stop, driver))),
        })
    }

    /// Like [`ProcessPool::ask_for`], without an owner.
    pub(crate) async fn ask(
        &self,
        request: impl FnOnce(u64) -> Vec<u8> + Send,
    ) -> Result<Vec<u8>, AgentError> {
        self.ask_for(&self.nobody, request).await
    }

    /// Waits for a process, builds the request with an id, and returns the answer line. Owners are
    /// served in turn. A turn that is cancelled while it waits leaves the queue; later, its process
    /// is killed and restarted.
    pub(crate) async fn ask_for(
        &self,
        owner: &Arc<str>,
        request: impl FnOnce(u64) -> Vec<u8> + Send,
    ) -> Result<Vec<u8>, AgentError> {
        let permit = self.turns.slot(owner).await;

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

    /// An error of the agent whose processes these are.
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
