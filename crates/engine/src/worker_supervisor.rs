//! Supervises a worker from the pump thread: opens its contexts, sends turns, watches deadlines,
//! restarts the worker.
//!
//! Never blocks on the worker, and never calls llama.cpp.
#![allow(
    clippy::disallowed_methods,
    reason = "the pump measures real time: a hung worker does not follow a test clock"
)]

mod deadlines;
mod deaths;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};

use super::context_record::{ContextRecord, ContextState};
use super::in_flight::{InFlight, PendingRequest, Ticket};
use super::restart_policy::{Restart, RestartPolicy};
use super::wire::{ContextId, FromWorker, Turn, TurnId};
use super::worker_handle::WorkerHandle;
use super::worker_output::WorkerEvent;
use super::{EngineError, EngineSpec};

/// After this many attempts a turn runs alone, so that a turn that kills workers takes no other
/// with it.
const ALONE_AFTER_ATTEMPTS: u8 = 2;

/// What an engine's handles ask of the pump.
#[expect(clippy::large_enum_variant, reason = "nearly all commands are requests")]
pub(super) enum Command {
    /// Make another context of the worker's model.
    Open(ContextId, Box<ContextRecord>),
    /// Free a context and answer its requests; then tell whether the pump ends, having none left.
    Close(ContextId, Option<Sender<bool>>),
    Submit(ContextId, PendingRequest),
    Cancel(ContextId, Ticket),
    /// Start a worker now if there is none.
    Restart,
}

/// What the pump is waiting for.
enum Phase {
    /// The worker is loading.
    Starting {
        until: Instant,
    },
    Ready,
    /// There is no worker, and none is started before then.
    Backoff {
        until: Instant,
    },
    /// There is no worker, and none is started before a request comes.
    Idle,
    /// The first worker failed; no other is started.
    Failed,
}

pub(super) struct WorkerSupervisor {
    /// What the worker is started with: that of its first context.
    spec: EngineSpec,
    contexts: BTreeMap<ContextId, ContextRecord>,
    commands: Receiver<Command>,
    /// True if a worker was ever ready. If the first one fails, no other is started.
    was_ready: bool,
    phase: Phase,
    worker: Option<WorkerHandle>,
    /// Turns that were lost with a worker; they go first.
    retries: VecDeque<PendingRequest>,
    sent: InFlight,
    /// True if the turn that was sent must run alone.
    alone: bool,
    turn_next: u64,
    /// The time at which the worker became ready, or its last turn ended.
    used: Instant,
    /// True if a worker has been started since the engine was last idle: the next one counts as a
    /// restart.
    has_started: bool,
    /// The time from which the worker owes a sign of life: that of its last one, or of the first
    /// turn that it got after that. Cancelling a turn does not change it.
    owed_since: Option<Instant>,
    /// Decode latency of the current worker (the 99th percentile), in microseconds; 0 while
    /// unknown.
    decode_p99_us: BTreeMap<ContextId, u32>,
    restarts: RestartPolicy,
}

impl WorkerSupervisor {
    pub(super) fn new(id: ContextId, first: ContextRecord, commands: Receiver<Command>) -> Self {
        let now = Instant::now();
        let spec = first.spec.clone();
        let starts_later = spec.idle_stop_ms > 0;
        if starts_later {
            first.status.idle();
        }

        Self {
            restarts: RestartPolicy::new(
                spec.restarts_max,
                Duration::from_millis(spec.restart_window_ms),
            ),
            spec,
            contexts: BTreeMap::from([(id, first)]),
            commands,
            was_ready: starts_later,
            phase: if starts_later { Phase::Idle } else { Phase::Backoff { until: now } },
            worker: None,
            retries: VecDeque::new(),
            sent: InFlight::default(),
            alone: false,
            turn_next: 0,
            used: now,
            has_started: false,
            owed_since: None,
            decode_p99_us: BTreeMap::new(),
        }
    }

    /// Runs until all contexts are closed, or until the first worker fails to start. Dropping the
    /// replies then answers every remaining turn.
    pub(super) fn run(mut self) {
        // Without a worker, the branch for its events never fires.
        let silence = never();
        while !matches!(self.phase, Phase::Failed) && !self.contexts.is_empty() {
            self.start_if_due();
            self.open_due();
            self.send_waiting();

            // Cloned, because the handlers below borrow `self` mutably.
            let events = self.worker.as_ref().map_or(&silence, WorkerHandle::events).clone();
            select! {
                recv(self.commands) -> command => match command {
                    Ok(command) => self.on_command(command),
                    Err(_) => break,
                },
                recv(events) -> event => self.on_event(event.unwrap_or(WorkerEvent::Closed(None))),
                default(self.sleep()) => {}
            }

            self.check_time();
        }

        self.contexts.values().for_each(|context| context.status.ended());
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Open(id, record) => {
                if matches!(self.phase, Phase::Idle) {
                    record.status.idle();
                } else if let Some(worker) = &self.worker {
                    record.status.started(worker.pid(), false);
                }
                self.contexts.insert(id, *record);
            }
            Command::Close(id, told) => {
                self.close(id);
                if let Some(told) = told {
                    // The caller waits for this.
                    let _ = told.send(self.contexts.is_empty());
                }
            }
            Command::Cancel(id, ticket) => self.cancel(id, ticket),
            Command::Restart => {
                let now = Instant::now();
                if let Phase::Backoff { until } = &mut self.phase {
                    // Only a pause can be cut short; in the other phases a worker runs, or none is
                    // needed.
                    *until = now;
                    self.restarts.forget();
                }
                self.contexts.values_mut().for_each(|context| context.forget_refusals(now));
            }
            Command::Submit(id, pending) => match pending.request.check() {
                // Without its context, dropping the request replies `Shutdown`.
                Ok(()) => {
                    if let Some(context) = self.contexts.get_mut(&id) {
                        context.asked(Instant::now());
                        context.waiting.push(pending.request.group, pending.ticket, pending);
                    }
                }
                Err(error) => pending.reply.send(Err(error)),
            },
        }
    }

    /// Frees a context. Dropping its requests answers them.
    fn close(&mut self, id: ContextId) {
        let Some(context) = self.contexts.remove(&id) else { return };
        context.status.ended();
        self.decode_p99_us.remove(&id);
        if let Some(worker) = &mut self.worker {
            worker.close(id);
        }
        drop(self.sent.take_of(id));
        self.retries.retain(|pending| pending.context != id);
    }

    /// Cancels a request, unless it has been answered meanwhile.
    fn cancel(&mut self, id: ContextId, ticket: Ticket) {
        let cancelled = if let Some((turn, pending)) = self.sent.cancel(ticket) {
            if let Some(worker) = &mut self.worker {
                worker.cancel(turn);
            }
            self.turn_ended(id);
            Some(pending)
        } else if let Some(at) = self.retries.iter().position(|pending| pending.ticket == ticket) {
            // A linear search is enough: there are at most `sent_max` retries of each context.
            self.retries.remove(at)
        } else {
            self.contexts.get_mut(&id).and_then(|context| context.waiting.remove(ticket))
        };

        if let Some(pending) = cancelled {
            pending.reply.send(Err(EngineError::Cancelled));
        }
    }

    /// The worker has one turn of a context fewer.
    fn turn_ended(&mut self, id: ContextId) {
        if let Some(context) = self.contexts.get_mut(&id) {
            context.sent = context.sent.saturating_sub(1);
        }
    }

    fn has_waiting(&self) -> bool {
        self.contexts.values().any(|context| !context.waiting.is_empty())
    }

    fn start_if_due(&mut self) {
        let now = Instant::now();
        let is_due = match self.phase {
            Phase::Backoff { until } => now >= until,
            Phase::Idle => self.has_waiting(),
            Phase::Starting { .. } | Phase::Ready | Phase::Failed => false,
        };
        if !is_due {
            return;
        }

        self.phase =
            Phase::Starting { until: now + Duration::from_millis(self.spec.start_timeout_ms) };

        // What was known about the previous worker does not hold for this one.
        self.owed_since = None;
        self.decode_p99_us.clear();

        match WorkerHandle::start(&self.spec) {
            Ok(worker) => {
                for context in self.contexts.values_mut() {
                    context.status.started(worker.pid(), self.has_started);
                    context.state = ContextState::Absent;
                }
                self.has_started = true;
                self.worker = Some(worker);
            }
            Err(error) => self.died(EngineError::WorkerDied {
                detail: format!("it could not be started: {error}"),
            }),
        }
    }

    /// Asks the worker for the contexts that it should have.
    fn open_due(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        let now = Instant::now();
        for (id, context) in &mut self.contexts {
            if context.is_due(now) {
                worker.open(*id, &context.spec);
                let timeout = Duration::from_millis(context.spec.start_timeout_ms);
                context.state = ContextState::Opening { until: now + timeout };
            }
        }
    }

    fn send_waiting(&mut self) {
        let (Phase::Ready, Some(worker)) = (&self.phase, &mut self.worker) else { return };
        // The turn that ran alone is over.
        if self.sent.is_empty() {
            self.alone = false;
        }

        while !self.alone {
            let can_send =
                |context: &ContextRecord| context.is_open() && context.sent < context.sent_max;
            let is_sendable = |pending: &PendingRequest| {
                self.contexts.get(&pending.context).is_some_and(can_send)
            };
            let retry = self.retries.iter().position(is_sendable);

            let alone = retry.is_some_and(|at| self.retries[at].attempts >= ALONE_AFTER_ATTEMPTS);
            // It waits until the other turns are over.
            if alone && !self.sent.is_empty() {
                break;
            }

            let next = match retry {
                Some(at) => self.retries.remove(at),
                None => {
                    let mut open = self.contexts.values_mut().filter(|context| can_send(context));
                    open.find_map(|context| context.waiting.pop())
                }
            };
            let Some(mut pending) = next else { break };

            pending.attempts += 1;
            let id = TurnId(self.turn_next);
            self.turn_next += 1;

            let span = pending.reply.span();
            span.sent();
            let timed = span.is_enabled();
            let (watched, with_sent) =
                (pending.following.watch.is_some(), pending.following.with_sent);
            let turn = Turn::new(id, pending.context, &pending.request);
            worker.send_turn(Turn { timed, watched, with_sent, ..turn });
            if let Some(context) = self.contexts.get_mut(&pending.context) {
                context.sent += 1;
            }
            self.sent.insert(id, pending);

            self.owed_since.get_or_insert_with(Instant::now);
            self.alone = alone;
        }
        worker.flush();
    }

    fn on_event(&mut self, event: WorkerEvent) {
        let now = Instant::now();
        self.contexts.values().for_each(|context| context.status.heard(now));
        self.owed_since = None;
        self.used = now;

        match event {
            WorkerEvent::Frame(FromWorker::Ready { context, facts }) => {
                if let Some(context) = self.contexts.get_mut(&context) {
                    for note in &facts.notes {
                        tracing::info!(engine = context.spec.name, "{note}");
                    }
                    context.status.ready(facts);
                    context.opened();
                }
                self.check_ready(now);
            }
            WorkerEvent::Frame(FromWorker::Refused { context: Some(id), error }) => {
                self.context_refused(id, error, now);
            }
            WorkerEvent::Frame(FromWorker::Refused { context: None, error })
                if self.spec.idle_stop_ms > 0 =>
            {
                // No starter waits for the outcome then, so the waiting requests get the error.
                self.refused(&error);
            }
            WorkerEvent::Frame(FromWorker::Refused { context: None, error }) => self.died(error),
            WorkerEvent::Frame(FromWorker::Done { id, result, timing }) => {
                if let Some(pending) = self.sent.remove(id) {
                    self.turn_ended(pending.context);
                    pending.reply.send_answer(result, timing);
                }
            }
            WorkerEvent::Frame(FromWorker::Progress { id, progress }) => {
                if let Some(pending) = self.sent.get(id) {
                    pending.tell(progress);
                }
            }
            WorkerEvent::Frame(FromWorker::Counts { context, counts }) => {
                if let Some(record) = self.contexts.get(&context) {
                    self.decode_p99_us.insert(context, counts.decode_p99_us);
                    record.status.counted(counts);
                }
            }
            WorkerEvent::Closed(reason) => {
                self.died(EngineError::WorkerDied { detail: reason.unwrap_or_default() });
            }
        }

        // Turns remain, so the worker's silence counts from now on.
        if !self.sent.is_empty() {
            self.owed_since = Some(now);
        }
    }

    /// The worker takes turns once each context was made or refused.
    fn check_ready(&mut self, now: Instant) {
        let is_opening = |context: &ContextRecord| {
            matches!(context.state, ContextState::Opening { .. } | ContextState::Absent)
        };
        if matches!(self.phase, Phase::Starting { .. }) && !self.contexts.values().any(is_opening) {
            self.phase = Phase::Ready;
            self.was_ready = true;
            self.restarts.ready(now);
        }
    }

    fn context_refused(&mut self, id: ContextId, error: EngineError, now: Instant) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        if context.is_new() {
            context.started(Err(error));
            self.close(id);
        } else {
            tracing::error!(
                engine = context.spec.label(),
                reason = %error,
                "a context cannot be made again, its turns wait"
            );
            context.refused(&error, now);
        }
        self.check_ready(now);
    }

    /// Ends the worker until it is needed again.
    fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.has_started = false;
        for context in self.contexts.values_mut() {
            context.state = ContextState::Absent;
            context.status.idle();
        }
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
    }

    /// Answers all waiting requests with the error of a worker that cannot start as specified; the
    /// next request tries again.
    fn refused(&mut self, error: &EngineError) {
        self.take_back(error);
        while let Some(pending) = self.retries.pop_front() {
            pending.reply.send(Err(error.clone()));
        }
        self.contexts.values_mut().for_each(|context| context.answer_waiting(error));
        self.rest();
    }
}
