//! The handle through which callers use an engine.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{JoinHandle, ThreadId};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tokio::sync::oneshot;

use super::context_record::ContextRecord;
use super::in_flight::{PendingRequest, Reply, Ticket};
use super::status::StatusCell;
use super::wire::ContextId;
use super::worker_handle::worker_command_for;
use super::worker_supervisor::{Command, WorkerSupervisor};
use super::{
    Adapter, EngineError, EngineSpec, EngineStatus, Following, Generation, Isolation, Request,
    check_chat, missing_extensions,
};

/// A context of a model: its KV cache and its adapters. Clones share it; it ends with
/// [`Engine::shutdown`] or with the last clone. Contexts of one model share its weights and its
/// worker.
#[derive(Clone)]
pub struct Engine(Arc<Context>);

struct Context {
    worker: Arc<Worker>,
    id: ContextId,
    status: Arc<StatusCell>,
    spec: EngineSpec,
    /// The result of checking the model's chat template, once it was checked.
    chat: OnceLock<Result<(), EngineError>>,
}

/// The weights of a model, in a worker with its pump.
struct Worker {
    commands: Sender<Command>,
    tickets: AtomicU64,
    /// The number of the next context.
    context_next: AtomicU32,
    /// The contexts that were opened, in order; those that are gone are removed when one is opened.
    contexts: Mutex<Vec<Weak<Context>>>,
    pump: ThreadId,
    /// The supervisor's thread; the handle that closes the last context takes and joins it.
    joined: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine").field(&self.status()).finish()
    }
}

/// Checks what can be checked before a worker is asked.
fn checked(spec: &EngineSpec) -> Result<(), EngineError> {
    spec.check()?;
    if !spec.template_variables.is_empty() {
        check_chat(spec)?;
    }
    Ok(())
}

/// A record of a new context, and where the outcome of its first opening arrives.
fn new_record(
    spec: &EngineSpec,
) -> (ContextRecord, Arc<StatusCell>, Receiver<Result<(), EngineError>>) {
    let status = Arc::new(StatusCell::new(spec.label()));
    let (starter, started) = bounded(1);
    (ContextRecord::new(spec.clone(), Arc::clone(&status), starter), status, started)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Every change is a single call, so a poisoned value is still consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Starts an engine and waits until its worker has loaded the model and decoded one token. With
    /// `idle_stop_ms`, the worker starts with the first request instead, which receives the error
    /// if the worker cannot start.
    ///
    /// # Errors
    /// The error that keeps the first worker from becoming ready: a specification out of range, the
    /// model file, an adapter, the device, the worker's death, or `start_timeout_ms`. There is no
    /// second attempt. [`EngineError::NotBuilt`] without llama.cpp, [`EngineError::Processor`] on a
    /// processor that llama.cpp is not built for.
    pub fn start(spec: EngineSpec) -> Result<Self, EngineError> {
        if cfg!(not(feature = "llama")) && spec.stub_answer.is_none() {
            return Err(EngineError::NotBuilt);
        }
        let missing = missing_extensions();
        if !missing.is_empty() && spec.stub_answer.is_none() {
            return Err(EngineError::Processor { missing: missing.join(", ") });
        }
        checked(&spec)?;
        if spec.isolation == Isolation::Process {
            // Checked here for the precise error: the supervisor would only report that no worker
            // could be started.
            worker_command_for(&spec)?;
        }

        let id = ContextId(0);
        let (record, status, started) = new_record(&spec);
        let (commands, inbox) = unbounded();

        let name = format!("{}-pump", spec.name);
        let supervisor = WorkerSupervisor::new(id, record, inbox);
        let pump = std::thread::Builder::new().name(name).spawn(move || supervisor.run()).map_err(
            |error| EngineError::WorkerDied {
                detail: format!("its pump thread could not be started: {error}"),
            },
        )?;
        let worker = Arc::new(Worker {
            commands,
            tickets: AtomicU64::new(0),
            context_next: AtomicU32::new(1),
            contexts: Mutex::default(),
            pump: pump.thread().id(),
            joined: Mutex::new(Some(pump)),
        });

        started.recv().unwrap_or(Err(EngineError::Shutdown))?;
        Ok(Self::of(worker, id, status, spec))
    }

    /// The handle of a context that was opened.
    fn of(worker: Arc<Worker>, id: ContextId, status: Arc<StatusCell>, spec: EngineSpec) -> Self {
        let context = Arc::new(Context { worker, id, status, spec, chat: OnceLock::new() });
        let mut all = locked(&context.worker.contexts);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&context));
        drop(all);
        Self(context)
    }

    /// A context of other sizes or adapters on the same weights, in the same worker: one that is
    /// there, or a new one, for which it waits.
    ///
    /// # Errors
    /// [`EngineError::BadSpec`] for a spec that does not share these weights
    /// ([`EngineSpec::shares_weights_with`]), else the error that keeps the context from being
    /// made. The worker's other contexts continue.
    pub fn beside(&self, spec: EngineSpec) -> Result<Self, EngineError> {
        let known = self.contexts().into_iter().find(|engine| engine.0.spec == spec);
        if let Some(known) = known {
            return Ok(known);
        }
        if !spec.shares_weights_with(&self.0.spec) {
            let detail = "it has another model, device or worker than the engine beside which it \
                          should run"
                .to_owned();
            return Err(EngineError::BadSpec { detail });
        }
        checked(&spec)?;

        let worker = &self.0.worker;
        let id = ContextId(worker.context_next.fetch_add(1, Ordering::Relaxed));
        let (record, status, started) = new_record(&spec);
        worker
            .commands
            .send(Command::Open(id, Box::new(record)))
            .map_err(|_| EngineError::Shutdown)?;
        started.recv().unwrap_or(Err(EngineError::Shutdown))?;
        Ok(Self::of(Arc::clone(worker), id, status, spec))
    }

    /// The context of the same engine with these adapters and no others.
    ///
    /// # Errors
    /// Like [`Engine::beside`].
    pub fn with_adapters(&self, adapters: &[Adapter]) -> Result<Self, EngineError> {
        if self.0.spec.adapters == adapters {
            return Ok(self.clone());
        }
        self.beside(EngineSpec { adapters: adapters.to_vec(), ..self.0.spec.clone() })
    }

    /// The contexts that share this one's weights, itself included, in the order of their opening.
    pub fn contexts(&self) -> Vec<Self> {
        let all = locked(&self.0.worker.contexts);
        let open = all.iter().filter_map(Weak::upgrade);
        open.filter(|context| !context.status.is_closed()).map(Self).collect()
    }

    /// What the context was made with.
    pub fn spec(&self) -> &EngineSpec {
        &self.0.spec
    }

    /// Returns whether requests in [`Format::Chat`](super::Format::Chat) can be answered. The first
    /// call renders a sample in a child process, so it reports an error before any request does,
    /// and also for a worker that is not started yet.
    ///
    /// # Errors
    /// Like [`check_chat`].
    pub fn check_chat(&self) -> Result<(), EngineError> {
        // A stub renders nothing.
        if self.0.spec.stub_answer.is_some() {
            return Ok(());
        }
        self.0.chat.get_or_init(|| check_chat(&self.0.spec)).clone()
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
        let Context { worker, id: context, status, .. } = &*self.0;
        let ticket = Ticket(worker.tickets.fetch_add(1, Ordering::Relaxed));
        let reply = Reply::new(Box::new(reply), status.in_flight());
        let pending =
            PendingRequest { ticket, context: *context, request, reply, following, attempts: 0 };
        // If the pump has ended, the request comes back, and dropping it replies `Shutdown`.
        drop(worker.commands.send(Command::Submit(*context, pending)));
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

    /// Like [`Engine::generate`], and also returns what `following` asks for.
    ///
    /// # Errors
    /// Like [`Engine::generate`].
    pub async fn generate_followed(
        &self,
        request: Request,
        following: Following,
    ) -> Result<Generation, EngineError> {
        let (answer, answered) = oneshot::channel();

        // A caller that stopped waiting does not need the answer.
        let ticket = self.enqueue(request, following, move |result| drop(answer.send(result)));
        let mut cancel_on_drop = CancelOnDrop { context: &self.0, ticket: Some(ticket) };

        let result = answered.await.unwrap_or(Err(EngineError::Shutdown));
        // Answered: there is nothing left to cancel.
        cancel_on_drop.ticket = None;
        result
    }

    /// The context's current state.
    pub fn status(&self) -> EngineStatus {
        self.0.status.read()
    }

    /// Starts a worker now instead of after the pause that follows deaths, and forgets the deaths.
    pub fn restart(&self) {
        // If the pump has ended, the engine was shut down.
        let _ = self.0.worker.commands.send(Command::Restart);
    }

    /// Frees the context, answers its open requests with [`EngineError::Shutdown`], and waits for
    /// both. The worker ends with its last context.
    ///
    /// Does not wait when called from a reply.
    pub fn shutdown(&self) {
        let Context { worker, id, .. } = &*self.0;
        // Replies run on the pump, which cannot wait for itself.
        if worker.pump == std::thread::current().id() {
            let _ = worker.commands.send(Command::Close(*id, None));
            return;
        }

        let (told, closed) = bounded(1);
        // The pump may have ended already.
        let _ = worker.commands.send(Command::Close(*id, Some(told)));
        let is_last = closed.recv().unwrap_or(true);
        // A separate statement, so that the lock is not held while joining.
        let pump = if is_last { locked(&worker.joined).take() } else { None };
        if let Some(pump) = pump {
            // The pump catches panics of replies and has none of its own; the panic hook would have
            // reported one.
            let _ = pump.join();
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // The pump may have ended already.
        let _ = self.worker.commands.send(Command::Close(self.id, None));
    }
}

/// Cancels a request when dropped before its answer has arrived.
struct CancelOnDrop<'e> {
    context: &'e Context,
    ticket: Option<Ticket>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // A pump that has ended has answered every request.
            let command = Command::Cancel(self.context.id, ticket);
            let _ = self.context.worker.commands.send(command);
        }
    }
}
