//! Supervises an engine's worker from the pump thread: sends turns, watches deadlines, restarts the
//! worker.
//!
//! Never blocks on the worker, and never calls llama.cpp.
#![allow(
    clippy::disallowed_methods,
    reason = "the pump measures real time: a hung worker does not follow a test clock"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};

use super::fair_queue::FairQueue;
use super::in_flight::{InFlight, PendingRequest, Ticket};
use super::restart_policy::{Restart, RestartPolicy};
use super::status::StatusCell;
use super::wire::{FromWorker, Turn, TurnId};
use super::worker_handle::WorkerHandle;
use super::worker_output::WorkerEvent;
use super::{EngineError, EngineSpec};

/// How often a turn is sent to a worker before it fails.
const ATTEMPTS_MAX: u8 = 4;
/// After this many attempts a turn runs alone, so that a turn that kills workers takes no other
/// with it.
const ALONE_AFTER_ATTEMPTS: u8 = 2;
/// Delay before writing again to a worker that does not read.
const BACKED_UP_RETRY: Duration = Duration::from_millis(5);
/// A worker that has turns counts as hung once it has been silent for this many of its slow decodes
/// (the 99th percentile).
const SILENT_DECODES: u32 = 50;
/// Shortest silence that counts as a hang: a busy machine stalls for seconds.
const SILENCE_MIN: Duration = Duration::from_secs(5);
/// The pump's longest sleep. Nothing is due then, but a bound keeps the arithmetic simple.
const IDLE: Duration = Duration::from_hours(1);

/// What an engine's handles ask of the pump.
#[expect(clippy::large_enum_variant, reason = "nearly all commands are requests")]
pub(super) enum Command {
    Submit(PendingRequest),
    Cancel(Ticket),
    /// Start a worker now if there is none.
    Restart,
    Shutdown,
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
    spec: EngineSpec,
    commands: Receiver<Command>,
    status: Arc<StatusCell>,
    /// Told the outcome of the first start; taken when that worker is ready.
    starter: Option<Sender<Result<(), EngineError>>>,
    phase: Phase,
    worker: Option<WorkerHandle>,
    /// Turns that were lost with a worker; they go first.
    retries: VecDeque<PendingRequest>,
    waiting: FairQueue<Ticket, PendingRequest>,
    sent: InFlight,
    /// Turns that a worker may have at once: enough to fill its sequences twice, so that it never
    /// runs dry.
    sent_max: usize,
    /// Whether the turn that was sent must run alone.
    alone: bool,
    turn_next: u64,
    /// When the worker became ready, or its last turn ended.
    used: Instant,
    /// Whether a worker has been started since the engine was last idle: the next one counts as a
    /// restart.
    has_started: bool,
    /// Since when the worker owes a sign of life: since its last one, or since it got its first
    /// turn after that. Cancelling a turn does not change it.
    owed_since: Option<Instant>,
    /// Decode latency of the current worker (the 99th percentile), in microseconds; 0 while
    /// unknown.
    decode_p99_us: u32,
    restarts: RestartPolicy,
}

impl WorkerSupervisor {
    pub(super) fn new(
        spec: EngineSpec,
        commands: Receiver<Command>,
        status: Arc<StatusCell>,
        starter: Sender<Result<(), EngineError>>,
    ) -> Self {
        let now = Instant::now();
        let starts_later = spec.idle_stop_ms > 0;
        let starter = if starts_later {
            // A starter that stopped waiting has dropped its handle, too, which ends the pump.
            let _ = starter.send(Ok(()));
            status.idle();
            None
        } else {
            Some(starter)
        };

        Self {
            sent_max: usize::from(spec.sequences_max) * 2,
            restarts: RestartPolicy::new(
                spec.restarts_max,
                Duration::from_millis(spec.restart_window_ms),
            ),
            spec,
            commands,
            status,
            starter,
            phase: if starts_later { Phase::Idle } else { Phase::Backoff { until: now } },
            worker: None,
            retries: VecDeque::new(),
            waiting: FairQueue::default(),
            sent: InFlight::default(),
            alone: false,
            turn_next: 0,
            used: now,
            has_started: false,
            owed_since: None,
            decode_p99_us: 0,
        }
    }

    /// Runs until shutdown, until the last handle is dropped, or until the first worker fails to
    /// start. Dropping the replies then answers every remaining turn.
    pub(super) fn run(mut self) {
        // Without a worker, the branch for its events never fires.
        let silence = never();
        while !matches!(self.phase, Phase::Failed) {
            self.start_if_due();
            self.send_waiting();

            // Cloned, because the handlers below borrow `self` mutably.
            let events = self.worker.as_ref().map_or(&silence, WorkerHandle::events).clone();
            select! {
                recv(self.commands) -> command => match command {
                    Ok(command) => if self.on_command(command) { break },
                    Err(_) => break,
                },
                recv(events) -> event => self.on_event(event.unwrap_or(WorkerEvent::Closed(None))),
                default(self.sleep()) => {}
            }

            self.check_time();
        }

        self.status.ended();
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
    }

    /// Handles a command. Returns whether the pump is to end.
    fn on_command(&mut self, command: Command) -> bool {
        match command {
            Command::Shutdown => return true,
            Command::Cancel(ticket) => self.cancel(ticket),
            Command::Restart => {
                if let Phase::Backoff { until } = &mut self.phase {
                    // Only a pause can be cut short; in the other phases a worker runs, or none is
                    // needed.
                    *until = Instant::now();
                    self.restarts.forget();
                }
            }
            Command::Submit(pending) => match pending.request.check() {
                Ok(()) => self.waiting.push(pending.request.group, pending.ticket, pending),
                Err(error) => pending.reply.send(Err(error)),
            },
        }
        false
    }

    /// Cancels a request, unless it has been answered meanwhile.
    fn cancel(&mut self, ticket: Ticket) {
        let cancelled = if let Some((id, pending)) = self.sent.cancel(ticket) {
            if let Some(worker) = &mut self.worker {
                worker.cancel(id);
            }
            Some(pending)
        } else if let Some(at) = self.retries.iter().position(|pending| pending.ticket == ticket) {
            // A linear search is enough: there are at most `sent_max` retries.
            self.retries.remove(at)
        } else {
            self.waiting.remove(ticket)
        };

        if let Some(pending) = cancelled {
            pending.reply.send(Err(EngineError::Cancelled));
        }
    }

    fn start_if_due(&mut self) {
        let now = Instant::now();
        let is_due = match self.phase {
            Phase::Backoff { until } => now >= until,
            Phase::Idle => !self.waiting.is_empty(),
            Phase::Starting { .. } | Phase::Ready | Phase::Failed => false,
        };
        if !is_due {
            return;
        }

        self.phase =
            Phase::Starting { until: now + Duration::from_millis(self.spec.start_timeout_ms) };

        // What was known about the previous worker does not hold for this one.
        self.owed_since = None;
        self.decode_p99_us = 0;

        match WorkerHandle::start(&self.spec) {
            Ok(worker) => {
                self.status.started(worker.pid(), self.has_started);
                self.has_started = true;
                self.worker = Some(worker);
            }
            Err(error) => self.died(EngineError::WorkerDied {
                detail: format!("it could not be started: {error}"),
            }),
        }
    }

    fn send_waiting(&mut self) {
        let (Phase::Ready, Some(worker)) = (&self.phase, &mut self.worker) else { return };
        // The turn that ran alone is over.
        if self.sent.is_empty() {
            self.alone = false;
        }

        while !self.alone && self.sent.len() < self.sent_max {
            let alone = self
                .retries
                .front()
                .is_some_and(|pending| pending.attempts >= ALONE_AFTER_ATTEMPTS);
            // It waits until the others are over.
            if alone && !self.sent.is_empty() {
                break;
            }

            let Some(mut pending) = self.retries.pop_front().or_else(|| self.waiting.pop()) else {
                break;
            };

            pending.attempts += 1;
            let id = TurnId(self.turn_next);
            self.turn_next += 1;

            let span = pending.reply.span();
            span.sent();
            let timed = span.is_enabled();
            let (watched, with_sent) =
                (pending.following.watch.is_some(), pending.following.with_sent);
            let turn = Turn::new(id, &pending.request);
            worker.send_turn(Turn { timed, watched, with_sent, ..turn });
            self.sent.insert(id, pending);

            self.owed_since.get_or_insert_with(Instant::now);
            self.alone = alone;
        }
        worker.flush();
    }

    fn on_event(&mut self, event: WorkerEvent) {
        let now = Instant::now();
        self.status.heard(now);
        self.owed_since = None;
        self.used = now;

        match event {
            WorkerEvent::Frame(FromWorker::Ready(facts)) => {
                self.phase = Phase::Ready;
                self.restarts.ready(now);
                for note in &facts.notes {
                    tracing::info!(engine = self.spec.name, "{note}");
                }
                self.status.ready(facts);
                if let Some(starter) = self.starter.take() {
                    // A starter that stopped waiting has dropped its handle, too, which ends the
                    // pump.
                    let _ = starter.send(Ok(()));
                }
            }
            WorkerEvent::Frame(FromWorker::Refused(error)) if self.spec.idle_stop_ms > 0 => {
                // No starter waits for the outcome then, so the waiting requests get the error.
                self.refused(&error);
            }
            WorkerEvent::Frame(FromWorker::Refused(error)) => self.died(error),
            WorkerEvent::Frame(FromWorker::Done { id, result, timing }) => {
                if let Some(pending) = self.sent.remove(id) {
                    pending.reply.send_answer(result, timing);
                }
            }
            WorkerEvent::Frame(FromWorker::Progress { id, progress }) => {
                if let Some(pending) = self.sent.get(id) {
                    pending.tell(progress);
                }
            }
            WorkerEvent::Frame(FromWorker::Counts(counts)) => {
                self.decode_p99_us = counts.decode_p99_us;
                self.status.counted(counts);
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

    fn check_time(&mut self) {
        let now = Instant::now();
        if self.idle_deadline().is_some_and(|deadline| now >= deadline) {
            return self.rest();
        }

        let hung = match self.phase {
            Phase::Starting { until } if now >= until => Some(self.spec.start_timeout_ms),
            Phase::Ready if self.deadline().is_some_and(|deadline| now >= deadline) => {
                Some(u64::try_from(self.silence_max().as_millis()).unwrap_or(u64::MAX))
            }
            _ => None,
        };

        if let Some(deadline_ms) = hung {
            self.died(EngineError::WorkerHung { deadline_ms });
        }
    }

    /// When a worker without turns ends, if it does.
    fn idle_deadline(&self) -> Option<Instant> {
        let has_turns =
            !(self.sent.is_empty() && self.retries.is_empty() && self.waiting.is_empty());
        let stops = matches!(self.phase, Phase::Ready) && self.spec.idle_stop_ms > 0 && !has_turns;
        stops.then(|| self.used + Duration::from_millis(self.spec.idle_stop_ms))
    }

    /// Ends the worker until it is needed again.
    fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.has_started = false;
        self.status.idle();
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
    }

    /// Answers all waiting requests with the error of a worker that cannot start as specified; the
    /// next request tries again.
    fn refused(&mut self, error: &EngineError) {
        self.take_back(error);
        while let Some(pending) = self.retries.pop_front().or_else(|| self.waiting.pop()) {
            pending.reply.send(Err(error.clone()));
        }
        self.rest();
    }

    fn deadline(&self) -> Option<Instant> {
        self.owed_since.map(|since| since + self.silence_max())
    }

    /// Longest silence of a healthy worker that has turns: a multiple of its slow decodes, once
    /// those are known.
    fn silence_max(&self) -> Duration {
        let limit = Duration::from_millis(self.spec.deadline_ms);
        if self.decode_p99_us == 0 {
            return limit;
        }

        let slow = Duration::from_micros(self.decode_p99_us.into());
        (slow * SILENT_DECODES).max(SILENCE_MIN).min(limit)
    }

    fn sleep(&self) -> Duration {
        let until = match self.phase {
            Phase::Starting { until } | Phase::Backoff { until } => Some(until),
            Phase::Ready => self.deadline().or(self.idle_deadline()),
            Phase::Idle | Phase::Failed => None,
        };
        let sleep = until.map_or(IDLE, |until| until.saturating_duration_since(Instant::now()));

        let backed_up = self.worker.as_ref().is_some_and(WorkerHandle::is_backed_up);
        if backed_up { sleep.min(BACKED_UP_RETRY) } else { sleep }
    }

    /// Ends the worker, takes its turns back, and decides whether to start another.
    fn died(&mut self, cause: EngineError) {
        self.status.down();
        let ending = self.worker.take().map(WorkerHandle::end);
        // How the process ended explains more than the closed socket that gave it away.
        let cause = match (cause, ending) {
            (EngineError::WorkerDied { detail }, Some(ending)) if detail.is_empty() => {
                EngineError::WorkerDied { detail: ending }
            }
            (EngineError::WorkerDied { detail }, Some(ending)) => {
                EngineError::WorkerDied { detail: format!("{detail}; {ending}") }
            }
            (cause, _) => cause,
        };

        if let Some(starter) = &self.starter {
            // The first worker is not restarted: its error shows what is wrong with the
            // specification.
            let _ = starter.send(Err(cause));
            self.phase = Phase::Failed;
            return;
        }

        self.take_back(&cause);

        let now = Instant::now();
        let Restart { pause, lost_after } = self.restarts.died(now);
        if let Some(deaths) = lost_after {
            let retry_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let lost = EngineError::Lost { deaths, retry_ms, last: cause.to_string() };
            tracing::error!(
                engine = self.spec.name,
                reason = %lost,
                "an engine is out of service, its turns wait"
            );
            self.status.lost(lost);
        }

        self.phase = Phase::Backoff { until: now + pause };
    }

    /// Takes back the turns that were lost with a worker, and fails those that have used up their
    /// attempts.
    fn take_back(&mut self, cause: &EngineError) {
        self.owed_since = None;
        let was_alone = std::mem::take(&mut self.alone);
        // Newest first, so that pushing them to the front restores their order.
        for pending in self.sent.take().rev() {
            if pending.attempts >= ATTEMPTS_MAX {
                pending.reply.send(Err(cause.clone()));
            } else if was_alone {
                // The others go first: if something else kills the workers, no single turn uses up
                // all its attempts.
                self.retries.push_back(pending);
            } else {
                self.retries.push_front(pending);
            }
        }
    }
}
