//! Supervision: the pump thread that owns an engine's link, sends turns, watches deadlines and restarts the worker.
//!
//! Never blocks on the worker, and never touches llama.cpp.
#![allow(
    clippy::disallowed_methods,
    reason = "the pump measures real time: a hung worker does not follow a test clock"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};

use super::fair::FairQueue;
use super::link::Link;
use super::listening::Heard;
use super::status::StatusCell;
use super::turns::{Held, Sents, Ticket};
use super::wire::{FromWorker, Turn, TurnId};
use super::{EngineError, EngineSpec};

/// How often a turn is given to a worker before it is given up.
const ATTEMPTS_MAX: u8 = 3;
/// From this attempt on a turn runs alone, so that one that kills workers takes no other with it.
const ALONE_FROM_ATTEMPT: u8 = ATTEMPTS_MAX - 1;
/// Wait before the second restart in a window; it doubles with each further one. The first is made at once.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// How soon to try again to write to a worker that does not read.
const BACKED_UP_RETRY: Duration = Duration::from_millis(5);
/// A worker that has turns and is silent for so many of its slow decodes (the 99th percentile) is hung.
const SILENT_DECODES: u32 = 50;
/// But not before this: a busy machine stalls for seconds.
const SILENCE_MIN: Duration = Duration::from_secs(5);
/// The pump's longest sleep; it has nothing to do after it, but a bound keeps the arithmetic simple.
const IDLE: Duration = Duration::from_hours(1);

/// What an engine's handles tell the pump.
pub(super) enum Command {
    Submit(Held),
    Cancel(Ticket),
    Shutdown,
}

/// What the pump waits for.
enum Phase {
    /// The worker is loading.
    Starting {
        until: Instant,
    },
    Ready,
    /// There is no worker until then.
    Backoff {
        until: Instant,
    },
    /// Given up.
    Failed(EngineError),
}

pub(super) struct Keeper {
    spec: EngineSpec,
    commands: Receiver<Command>,
    status: Arc<StatusCell>,
    /// Who waits for the first worker; taken when it is ready.
    starter: Option<Sender<Result<(), EngineError>>>,
    phase: Phase,
    link: Option<Link>,
    /// Turns that a worker died with; they go first.
    again: VecDeque<Held>,
    waiting: FairQueue<Held>,
    sent: Sents,
    /// Turns that a worker may have at once: enough to fill its sequences twice, so that it never waits for more.
    sent_max: usize,
    /// Whether the only turn that was sent must stay the only one.
    alone: bool,
    turn_next: u64,
    heard: Instant,
    /// Of the present worker's decodes, in microseconds; 0 while unknown.
    decode_p99_us: u32,
    deaths: VecDeque<Instant>,
}

impl Keeper {
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
            link: None,
            again: VecDeque::new(),
            waiting: FairQueue::default(),
            sent: Sents::default(),
            alone: false,
            turn_next: 0,
            heard: now,
            decode_p99_us: 0,
            deaths: VecDeque::new(),
        }
    }

    /// Runs until shutdown, until all handles are gone, or until the first worker fails to start. Every turn that is
    /// left is then answered by the drop of its reply.
    pub(super) fn run(mut self) {
        let silence = never();
        while !self.is_over() {
            self.start_if_due();
            self.send_waiting();
            let heard = self.link.as_ref().map_or(&silence, Link::heard).clone();
            select! {
                recv(self.commands) -> command => match command {
                    Ok(command) => if self.on_command(command) { break },
                    Err(_) => break,
                },
                recv(heard) -> heard => self.on_heard(heard.unwrap_or(Heard::Closed(None))),
                default(self.sleep()) => {}
            }
            self.check_time();
        }
        self.status.ended();
        if let Some(link) = self.link.take() {
            link.end();
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
            (Command::Submit(held), Phase::Failed(error)) => held.reply.give(Err(error.clone())),
            (Command::Submit(held), _) => match held.request.check() {
                Ok(()) => self.waiting.push(held.request.group, held),
                Err(error) => held.reply.give(Err(error)),
            },
        }
        false
    }

    /// Takes a request back, wherever it is. One that was answered meanwhile is gone already.
    fn cancel(&mut self, ticket: Ticket) {
        let is_it = |held: &Held| held.ticket == ticket;
        if let Some((id, held)) = self.sent.cancel(ticket) {
            if let Some(link) = &mut self.link {
                link.cancel(id);
            }
            held.reply.give(Err(EngineError::Cancelled));
        } else if let Some(at) = self.again.iter().position(is_it) {
            self.again.remove(at).into_iter().for_each(|held| held.reply.give(Err(EngineError::Cancelled)));
        } else {
            self.waiting.remove(is_it).into_iter().for_each(|held| held.reply.give(Err(EngineError::Cancelled)));
        }
    }

    fn start_if_due(&mut self) {
        let Phase::Backoff { until } = self.phase else { return };
        let now = Instant::now();
        if now < until {
            return;
        }
        self.phase = Phase::Starting { until: now + Duration::from_millis(self.spec.start_timeout_ms) };
        self.heard = now;
        self.decode_p99_us = 0;
        match Link::start(&self.spec) {
            Ok(link) => {
                self.status.started(link.pid(), self.starter.is_none());
                self.link = Some(link);
            }
            Err(error) => self.died(EngineError::WorkerDied { detail: format!("it could not be started: {error}") }),
        }
    }

    fn send_waiting(&mut self) {
        let (Phase::Ready, Some(link)) = (&self.phase, &mut self.link) else { return };
        if self.sent.is_empty() {
            self.alone = false;
        }
        while !self.alone && self.sent.len() < self.sent_max {
            let alone = self.again.front().is_some_and(|held| held.attempts >= ALONE_FROM_ATTEMPT);
            if alone && !self.sent.is_empty() {
                break;
            }
            let Some(mut held) = self.again.pop_front().or_else(|| self.waiting.pop()) else { break };
            held.attempts += 1;
            let id = TurnId(self.turn_next);
            self.turn_next += 1;
            link.send_turn(Turn::new(id, &held.request));
            self.sent.insert(id, held, Instant::now());
            self.alone = alone;
        }
        link.flush();
    }

    fn on_heard(&mut self, heard: Heard) {
        let now = Instant::now();
        self.heard = now;
        self.status.heard(now);
        match heard {
            Heard::Frame(FromWorker::Ready(facts)) => {
                self.phase = Phase::Ready;
                self.status.ready(facts);
                if let Some(starter) = self.starter.take() {
                    // A starter that is gone has dropped its handle too, and the pump ends by that.
                    let _ = starter.send(Ok(()));
                }
            }
            Heard::Frame(FromWorker::Refused(error)) => self.died(error),
            Heard::Frame(FromWorker::Done { id, result }) => {
                if let Some(held) = self.sent.remove(id) {
                    held.reply.give(result);
                }
            }
            Heard::Frame(FromWorker::Counts(counts)) => {
                self.decode_p99_us = counts.decode_p99_us;
                self.status.counted(counts);
            }
            Heard::Frame(FromWorker::Fatal(detail)) => self.died(EngineError::WorkerDied { detail }),
            Heard::Closed(reason) => self.died(EngineError::WorkerDied { detail: reason.unwrap_or_default() }),
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
        self.sent.deadline(self.heard, self.silence_max())
    }

    /// Longest silence of a worker that has turns: many times what its slow decodes take, once that is known.
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
        let backed_up = self.link.as_ref().is_some_and(Link::is_backed_up);
        if backed_up { sleep.min(BACKED_UP_RETRY) } else { sleep }
    }

    /// Ends the worker, takes its turns back, and decides whether there will be another one.
    fn died(&mut self, cause: EngineError) {
        self.status.down();
        let ending = self.link.take().map(Link::end);
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
            // The first worker is not tried again: its error tells what is wrong with the specification.
            let _ = starter.send(Err(cause.clone()));
            self.phase = Phase::Failed(cause);
            return;
        }
        self.alone = false;
        for held in self.sent.take().rev() {
            if held.attempts >= ATTEMPTS_MAX {
                held.reply.give(Err(cause.clone()));
            } else {
                self.again.push_front(held);
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
        for held in self.again.drain(..).chain(std::iter::from_fn(|| self.waiting.pop())) {
            held.reply.give(Err(error.clone()));
        }
        self.phase = Phase::Failed(error);
    }
}
