//! Supervises an engine's worker from the pump thread: sends turns, watches deadlines, restarts the worker.
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
use super::status::StatusCell;
use super::wire::{FromWorker, Turn, TurnId};
use super::worker_handle::WorkerHandle;
use super::worker_output::WorkerEvent;
use super::{EngineError, EngineSpec};

/// Times a turn is sent to a worker before it fails.
const ATTEMPTS_MAX: u8 = 3;
/// After this many attempts a turn runs alone, so that a turn that kills workers takes no other with it.
const ALONE_AFTER_ATTEMPTS: u8 = ATTEMPTS_MAX - 1;
/// Delay before the second restart in a window; it doubles with each further one. The first restart has none.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Delay before writing again to a worker that does not read.
const BACKED_UP_RETRY: Duration = Duration::from_millis(5);
/// A worker that has turns is hung once it is silent for this many of its slow decodes (the 99th percentile),
const SILENT_DECODES: u32 = 50;
/// but not before this: a busy machine stalls for seconds.
const SILENCE_MIN: Duration = Duration::from_secs(5);
/// The pump's longest sleep. Nothing is due then, but a bound keeps the arithmetic simple.
const IDLE: Duration = Duration::from_hours(1);

/// What an engine's handles ask of the pump.
pub(super) enum Command {
    Submit(PendingRequest),
    Cancel(Ticket),
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
    /// No further worker is started.
    Failed(EngineError),
}

pub(super) struct WorkerSupervisor {
    spec: EngineSpec,
    commands: Receiver<Command>,
    status: Arc<StatusCell>,
    /// Told the outcome of the first start; taken when that worker is ready.
    starter: Option<Sender<Result<(), EngineError>>>,
    phase: Phase,
    worker: Option<WorkerHandle>,
    /// Turns that a worker died with; they go first.
    retries: VecDeque<PendingRequest>,
    waiting: FairQueue<Ticket, PendingRequest>,
    sent: InFlight,
    /// Turns that a worker may have at once: enough to fill its sequences twice, so that it never runs dry.
    sent_max: usize,
    /// Whether the turn that was sent must run alone.
    alone: bool,
    turn_next: u64,
    last_event: Instant,
    /// Of the current worker's decodes, in microseconds; 0 while unknown.
    decode_p99_us: u32,
    deaths: VecDeque<Instant>,
}

impl WorkerSupervisor {
    pub(super) fn new(
        spec: EngineSpec,
        commands: Receiver<Command>,
        status: Arc<StatusCell>,
        starter: Sender<Result<(), EngineError>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            sent_max: usize::from(spec.sequences_max) * 2,
            spec,
            commands,
            status,
            starter: Some(starter),
            phase: Phase::Backoff { until: now },
            worker: None,
            retries: VecDeque::new(),
            waiting: FairQueue::default(),
            sent: InFlight::default(),
            alone: false,
            turn_next: 0,
            last_event: now,
            decode_p99_us: 0,
            deaths: VecDeque::new(),
        }
    }

    /// Runs until shutdown, until the last handle is dropped, or until the first worker fails to start. Dropping the
    /// replies then answers every remaining turn.
    pub(super) fn run(mut self) {
        let silence = never();
        while !self.is_over() {
            self.start_if_due();
            self.send_waiting();
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

    /// Whether the start failed and was reported.
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Failed(_)) && self.starter.is_some()
    }

    fn on_command(&mut self, command: Command) -> bool {
        match (command, &self.phase) {
            (Command::Shutdown, _) => return true,
            (Command::Cancel(ticket), _) => self.cancel(ticket),
            (Command::Submit(pending), Phase::Failed(error)) => pending.reply.send(Err(error.clone())),
            (Command::Submit(pending), _) => match pending.request.check() {
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
            // At most `sent_max` turns.
            self.retries.remove(at)
        } else {
            self.waiting.remove(ticket)
        };
        if let Some(pending) = cancelled {
            pending.reply.send(Err(EngineError::Cancelled));
        }
    }

    fn start_if_due(&mut self) {
        let Phase::Backoff { until } = self.phase else { return };
        let now = Instant::now();
        if now < until {
            return;
        }
        self.phase = Phase::Starting { until: now + Duration::from_millis(self.spec.start_timeout_ms) };
        self.last_event = now;
        self.decode_p99_us = 0;
        match WorkerHandle::start(&self.spec) {
            Ok(worker) => {
                self.status.started(worker.pid(), self.starter.is_none());
                self.worker = Some(worker);
            }
            Err(error) => self.died(EngineError::WorkerDied { detail: format!("it could not be started: {error}") }),
        }
    }

    fn send_waiting(&mut self) {
        let (Phase::Ready, Some(worker)) = (&self.phase, &mut self.worker) else { return };
        if self.sent.is_empty() {
            self.alone = false;
        }
        while !self.alone && self.sent.len() < self.sent_max {
            let alone = self.retries.front().is_some_and(|pending| pending.attempts >= ALONE_AFTER_ATTEMPTS);
            if alone && !self.sent.is_empty() {
                break;
            }
            let Some(mut pending) = self.retries.pop_front().or_else(|| self.waiting.pop()) else { break };
            pending.attempts += 1;
            let id = TurnId(self.turn_next);
            self.turn_next += 1;
            let span = pending.reply.span();
            span.sent();
            let timed = span.is_enabled();
            worker.send_turn(Turn { timed, ..Turn::new(id, &pending.request) });
            self.sent.insert(id, pending, Instant::now());
            self.alone = alone;
        }
        worker.flush();
    }

    fn on_event(&mut self, event: WorkerEvent) {
        let now = Instant::now();
        self.last_event = now;
        self.status.heard(now);
        match event {
            WorkerEvent::Frame(FromWorker::Ready(facts)) => {
                self.phase = Phase::Ready;
                self.status.ready(facts);
                if let Some(starter) = self.starter.take() {
                    // A starter that stopped waiting has dropped its handle, too, which ends the pump.
                    let _ = starter.send(Ok(()));
                }
            }
            WorkerEvent::Frame(FromWorker::Refused(error)) => self.died(error),
            WorkerEvent::Frame(FromWorker::Done { id, result, timing }) => {
                if let Some(pending) = self.sent.remove(id) {
                    pending.reply.send_answer(result, timing);
                }
            }
            WorkerEvent::Frame(FromWorker::Counts(counts)) => {
                self.decode_p99_us = counts.decode_p99_us;
                self.status.counted(counts);
            }
            WorkerEvent::Frame(FromWorker::Fatal(detail)) => self.died(EngineError::WorkerDied { detail }),
            WorkerEvent::Closed(reason) => self.died(EngineError::WorkerDied { detail: reason.unwrap_or_default() }),
        }
    }

    fn check_time(&mut self) {
        let now = Instant::now();
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

    fn deadline(&self) -> Option<Instant> {
        self.sent.deadline(self.last_event, self.silence_max())
    }

    /// Longest silence of a healthy worker that has turns: a multiple of its slow decodes, once those are known.
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
            Phase::Ready => self.deadline(),
            Phase::Failed(_) => None,
        };
        let sleep = until.map_or(IDLE, |until| until.saturating_duration_since(Instant::now()));
        let backed_up = self.worker.as_ref().is_some_and(WorkerHandle::is_backed_up);
        if backed_up { sleep.min(BACKED_UP_RETRY) } else { sleep }
    }

    /// Ends the worker, takes its turns back, and decides whether to start another.
    fn died(&mut self, cause: EngineError) {
        self.status.down();
        let ending = self.worker.take().map(WorkerHandle::end);
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
            // The first worker is not restarted: its error shows what is wrong with the specification.
            let _ = starter.send(Err(cause.clone()));
            self.phase = Phase::Failed(cause);
            return;
        }
        self.alone = false;
        for pending in self.sent.take().rev() {
            if pending.attempts >= ATTEMPTS_MAX {
                pending.reply.send(Err(cause.clone()));
            } else {
                self.retries.push_front(pending);
            }
        }
        let now = Instant::now();
        let window = Duration::from_millis(self.spec.restart_window_ms);
        self.deaths.push_back(now);
        while self.deaths.front().is_some_and(|death| now.duration_since(*death) > window) {
            self.deaths.pop_front();
        }
        let deaths = u32::try_from(self.deaths.len()).unwrap_or(u32::MAX);
        if deaths > self.spec.restarts_max {
            let window_ms = self.spec.restart_window_ms;
            self.give_up(EngineError::RestartStorm { restarts: deaths - 1, window_ms, last: cause.to_string() });
        } else {
            let wait = if deaths == 1 { Duration::ZERO } else { BACKOFF * 2_u32.saturating_pow(deaths - 2) };
            self.phase = Phase::Backoff { until: now + wait.min(BACKOFF_MAX) };
        }
    }

    fn give_up(&mut self, error: EngineError) {
        self.status.failed(error.clone());
        for pending in self.retries.drain(..).chain(std::iter::from_fn(|| self.waiting.pop())) {
            pending.reply.send(Err(error.clone()));
        }
        self.phase = Phase::Failed(error);
    }
}
