//! The handle through which the rest of the crate uses an engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded, unbounded};
use tokio::sync::oneshot;

use super::keeper::{Command, Keeper};
use super::link::bound_command;
use super::status::StatusCell;
use super::turns::{Held, Reply, Ticket};
use super::{EngineError, EngineSpec, EngineStatus, Generation, Isolation, Request};

/// One model on one device. Clones share it; it ends with [`Engine::shutdown`] or with the last clone.
#[derive(Clone)]
pub struct Engine {
    commands: Sender<Command>,
    status: Arc<StatusCell>,
    tickets: Arc<AtomicU64>,
    /// The pump. Behind a lock because whichever clone shuts the engine down first waits for it.
    pump: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine").field(&self.status.read()).finish()
    }
}

impl Engine {
    /// Starts an engine and waits until its worker has loaded the model and decoded one token.
    ///
    /// # Errors
    /// Whatever keeps the first worker from getting ready: a specification out of range, the model file, the device,
    /// the worker's death, or `start_timeout_ms`. It is not tried again. [`EngineError::NotBuilt`] without llama.cpp.
    pub fn start(spec: EngineSpec) -> Result<Self, EngineError> {
        if cfg!(not(feature = "llama")) && spec.echo.is_none() {
            return Err(EngineError::NotBuilt);
        }
        spec.check()?;
        if spec.isolation == Isolation::Process {
            // The pump would only report that its worker could not be started.
            bound_command(&spec)?;
        }
        let status = Arc::new(StatusCell::new(spec.name.clone()));
        let (commands, inbox) = unbounded();
        let (starter, started) = bounded(1);
        let name = format!("{}-pump", spec.name);
        let keeper = Keeper::new(spec, inbox, Arc::clone(&status), starter);
        let pump = std::thread::Builder::new().name(name).spawn(move || keeper.run()).map_err(|error| {
            EngineError::WorkerDied { detail: format!("its pump thread could not be started: {error}") }
        })?;
        started.recv().unwrap_or(Err(EngineError::Shutdown))?;
        Ok(Self { commands, status, tickets: Arc::default(), pump: Arc::new(Mutex::new(Some(pump))) })
    }

    /// Queues a request and returns at once. `reply` is called exactly once, on the engine's pump thread (after a
    /// shutdown: on the caller's), so it should only pass the result on.
    ///
    /// The queue has no limit: whoever submits bounds the number of turns in flight.
    pub fn submit(&self, request: Request, reply: impl FnOnce(Result<Generation, EngineError>) + Send + 'static) {
        self.take(request, reply);
    }

    fn take(&self, request: Request, reply: impl FnOnce(Result<Generation, EngineError>) + Send + 'static) -> Ticket {
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let reply = Reply::new(Box::new(reply), self.status.in_flight());
        let held = Held { ticket, request, reply, attempts: 0 };
        // If the pump has ended, the request comes back and its reply says so when it is dropped here.
        drop(self.commands.send(Command::Submit(held)));
        ticket
    }

    /// Generates one text. Dropping the future cancels the request: the worker stops computing it.
    ///
    /// # Errors
    /// See [`EngineError`]; a worker's death shows only after the request was tried three times.
    pub async fn generate(&self, request: Request) -> Result<Generation, EngineError> {
        let (answer, answered) = oneshot::channel();
        // A caller that stopped waiting does not need the answer.
        let ticket = self.take(request, move |result| drop(answer.send(result)));
        let mut given_up = GivenUp { commands: &self.commands, ticket: Some(ticket) };
        let result = answered.await.unwrap_or(Err(EngineError::Shutdown));
        given_up.ticket = None;
        result
    }

    /// The engine's state now.
    pub fn status(&self) -> EngineStatus {
        self.status.read()
    }

    /// Ends the worker, answers every open request with [`EngineError::Shutdown`], and waits for both.
    ///
    /// Called from a reply it does not wait.
    pub fn shutdown(&self) {
        // The pump may have ended already.
        let _ = self.commands.send(Command::Shutdown);
        let pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pump) = pump
            && pump.thread().id() != std::thread::current().id()
        {
            // The pump catches the panics of replies and has none of its own; one would have been reported.
            let _ = pump.join();
        }
    }
}

/// Takes a request back when it is dropped before the answer came.
struct GivenUp<'e> {
    commands: &'e Sender<Command>,
    ticket: Option<Ticket>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // A pump that has ended has answered all.
            let _ = self.commands.send(Command::Cancel(ticket));
        }
    }
}
