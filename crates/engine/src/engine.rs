//! The handle through which callers use an engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded, unbounded};
use tokio::sync::oneshot;

use super::in_flight::{PendingRequest, Reply, Ticket};
use super::status::StatusCell;
use super::worker_handle::worker_command_for;
use super::worker_supervisor::{Command, WorkerSupervisor};
use super::{
    EngineError, EngineSpec, EngineStatus, Following, Generation, Isolation, Request, check_chat,
};

/// One model on one device. Clones share it; it ends with [`Engine::shutdown`] or with the last
/// clone.
#[derive(Clone)]
pub struct Engine {
    commands: Sender<Command>,
    status: Arc<StatusCell>,
    tickets: Arc<AtomicU64>,
    spec: Arc<EngineSpec>,
    /// Whether the model's chat template can be used, once it was asked.
    chat: Arc<OnceLock<Result<(), EngineError>>>,
    /// The supervisor's thread. Behind a lock because the first clone that shuts the engine down
    /// joins it.
    pump: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine").field(&self.status.read()).finish()
    }
}

impl Engine {
    /// Starts an engine and waits until its worker has loaded the model and decoded one token. With
    /// `idle_stop_ms`, the worker starts with the first request instead, which receives the error
    /// if the worker cannot start.
    ///
    /// # Errors
    /// Whatever keeps the first worker from becoming ready: a specification out of range, the model
    /// file, the device, the worker's death, or `start_timeout_ms`. There is no second attempt.
    /// [`EngineError::NotBuilt`] without llama.cpp.
    pub fn start(spec: EngineSpec) -> Result<Self, EngineError> {
        if cfg!(not(feature = "llama")) && spec.stub_answer.is_none() {
            return Err(EngineError::NotBuilt);
        }
        spec.check()?;
        if !spec.template_variables.is_empty() {
            check_chat(&spec)?;
        }
        if spec.isolation == Isolation::Process {
            // Checked here for the precise error: the supervisor would only report that no worker
            // could be started.
            worker_command_for(&spec)?;
        }

        let status = Arc::new(StatusCell::new(spec.name.clone()));
        let (commands, inbox) = unbounded();
        let (starter, started) = bounded(1);

        let name = format!("{}-pump", spec.name);
        let shared = Arc::new(spec.clone());
        let supervisor = WorkerSupervisor::new(spec, inbox, Arc::clone(&status), starter);
        let pump = std::thread::Builder::new().name(name).spawn(move || supervisor.run()).map_err(
            |error| EngineError::WorkerDied {
                detail: format!("its pump thread could not be started: {error}"),
            },
        )?;

        started.recv().unwrap_or(Err(EngineError::Shutdown))?;

        Ok(Self {
            commands,
            status,
            tickets: Arc::default(),
            spec: shared,
            chat: Arc::default(),
            pump: Arc::new(Mutex::new(Some(pump))),
        })
    }

    /// Whether requests in [`Format::Chat`](super::Format::Chat) can be answered. The first call
    /// renders a sample in a child process; it says so before any request does, and also for a
    /// worker that is not started yet.
    ///
    /// # Errors
    /// As [`check_chat`].
    pub fn check_chat(&self) -> Result<(), EngineError> {
        // A stub renders nothing.
        if self.spec.stub_answer.is_some() {
            return Ok(());
        }
        self.chat.get_or_init(|| check_chat(&self.spec)).clone()
    }

    /// Queues a request and returns at once. `reply` is called exactly once, on the engine's pump
    /// thread (after a shutdown: on the caller's), so it should only pass the result on.
    ///
    /// The queue is unbounded: callers limit the number of turns in flight. If level debug is
    /// enabled, the request has a span `engine_request` below the caller's current one, with its
    /// tokens and its times in queue, prefill and decode.
    pub fn submit(
        &self,
        request: Request,
        reply: impl FnOnce(Result<Generation, EngineError>) + Send + 'static,
    ) {
        self.enqueue(request, Following::default(), reply);
    }

    fn enqueue(
        &self,
        request: Request,
        following: Following,
        reply: impl FnOnce(Result<Generation, EngineError>) + Send + 'static,
    ) -> Ticket {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let reply = Reply::new(Box::new(reply), self.status.in_flight());
        let pending = PendingRequest { ticket, request, reply, following, attempts: 0 };
        // If the pump has ended, the request comes back, and dropping it replies `Shutdown`.
        drop(self.commands.send(Command::Submit(pending)));
        ticket
    }

    /// Generates one text. Dropping the future cancels the request: the worker stops computing it.
    ///
    /// # Errors
    /// See [`EngineError`]; a worker's death is reported only after four workers died while they
    /// had this request.
    pub async fn generate(&self, request: Request) -> Result<Generation, EngineError> {
        self.generate_followed(request, Following::default()).await
    }

    /// As [`Engine::generate`], with what `following` asks for.
    ///
    /// # Errors
    /// As [`Engine::generate`].
    pub async fn generate_followed(
        &self,
        request: Request,
        following: Following,
    ) -> Result<Generation, EngineError> {
        let (answer, answered) = oneshot::channel();

        // A caller that stopped waiting does not need the answer.
        let ticket = self.enqueue(request, following, move |result| drop(answer.send(result)));
        let mut cancel_on_drop = CancelOnDrop { commands: &self.commands, ticket: Some(ticket) };

        let result = answered.await.unwrap_or(Err(EngineError::Shutdown));
        // Answered: there is nothing left to cancel.
        cancel_on_drop.ticket = None;
        result
    }

    /// The engine's current state.
    pub fn status(&self) -> EngineStatus {
        self.status.read()
    }

    /// Starts a worker now instead of after the pause that follows deaths, and forgets the deaths.
    pub fn restart(&self) {
        // If the pump has ended, the engine was shut down.
        let _ = self.commands.send(Command::Restart);
    }

    /// Ends the worker, answers every open request with [`EngineError::Shutdown`], and waits for
    /// both.
    ///
    /// Does not wait when called from a reply.
    pub fn shutdown(&self) {
        // The pump may have ended already.
        let _ = self.commands.send(Command::Shutdown);
        // A statement of its own, so that the lock is not held while joining.
        let pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner).take();

        // A thread cannot join itself, and replies run on the pump.
        if let Some(pump) = pump
            && pump.thread().id() != std::thread::current().id()
        {
            // The pump catches panics of replies and has none of its own; the panic hook would have
            // reported one.
            let _ = pump.join();
        }
    }
}

/// Cancels a request when dropped before its answer has arrived.
struct CancelOnDrop<'e> {
    commands: &'e Sender<Command>,
    ticket: Option<Ticket>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // A pump that has ended has answered every request.
            let _ = self.commands.send(Command::Cancel(ticket));
        }
    }
}
