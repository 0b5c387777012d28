//! What the supervisor knows about a context of its worker: its state, and the requests that wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use prime_retry::Backoff;

use super::fair_queue::FairQueue;
use super::in_flight::{PendingRequest, Ticket};
use super::status::StatusCell;
use super::{EngineError, EngineSpec};

/// Pauses before a context that was refused is tried again: its adapter may come back.
const REFUSED_BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1) };

/// Workers that may die while a new context is made before it counts as their death: a first one
/// may have died of something else.
const OPENING_DEATHS_MAX: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextState {
    /// The worker, if there is one, does not know it yet.
    Absent,
    /// The worker makes it.
    Opening {
        until: Instant,
    },
    Open,
    /// It could not be made, and is not tried again before then.
    Refused {
        until: Instant,
    },
}

pub(super) struct ContextRecord {
    pub(super) spec: EngineSpec,
    pub(super) status: Arc<StatusCell>,
    /// Told the outcome of the first opening; taken then.
    starter: Option<Sender<Result<(), EngineError>>>,
    pub(super) state: ContextState,
    pub(super) waiting: FairQueue<Ticket, PendingRequest>,
    /// Turns that the worker has.
    pub(super) sent: usize,
    /// Turns that the worker may have at once: enough to fill its sequences twice, so that it never
    /// runs dry.
    pub(super) sent_max: usize,
    /// Refusals in a row.
    refusals: u32,
    /// Workers that died while it was made for the first time.
    opening_deaths: u8,
}

impl ContextRecord {
    pub(super) fn new(
        spec: EngineSpec,
        status: Arc<StatusCell>,
        starter: Sender<Result<(), EngineError>>,
    ) -> Self {
        let mut record = Self {
            sent_max: usize::from(spec.sequences_max) * 2,
            spec,
            status,
            starter: Some(starter),
            state: ContextState::Absent,
            waiting: FairQueue::default(),
            sent: 0,
            refusals: 0,
            opening_deaths: 0,
        };
        // A worker that starts when it is needed answers requests with what keeps it from starting.
        if record.spec.idle_stop_ms > 0 {
            record.started(Ok(()));
        }
        record
    }

    /// Returns whether somebody waits for its first opening.
    pub(super) fn is_new(&self) -> bool {
        self.starter.is_some()
    }

    /// Tells the starter, if one waits.
    pub(super) fn started(&mut self, result: Result<(), EngineError>) {
        if let Some(starter) = self.starter.take() {
            // A starter that stopped waiting has dropped its handle, too, which closes the context.
            let _ = starter.send(result);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == ContextState::Open
    }

    /// Returns whether the worker should be asked for it.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match self.state {
            ContextState::Absent => true,
            ContextState::Refused { until } => now >= until,
            ContextState::Opening { .. } | ContextState::Open => false,
        }
    }

    /// When the worker is asked for it again.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        match self.state {
            ContextState::Refused { until } => Some(until),
            ContextState::Absent | ContextState::Opening { .. } | ContextState::Open => None,
        }
    }

    /// Notes a request: a context of a worker that starts when it is needed is tried again.
    pub(super) fn asked(&mut self, now: Instant) {
        if self.spec.idle_stop_ms > 0 {
            self.forget_refusals(now);
        }
    }

    pub(super) fn opened(&mut self) {
        self.state = ContextState::Open;
        self.refusals = 0;
        self.started(Ok(()));
    }

    /// Notes that the worker cannot make the context. Its requests wait, or are answered if the
    /// worker is one that starts when it is needed.
    pub(super) fn refused(&mut self, error: &EngineError, now: Instant) {
        self.state = ContextState::Refused { until: now + REFUSED_BACKOFF.delay(self.refusals) };
        self.refusals = self.refusals.saturating_add(1);
        if self.spec.idle_stop_ms > 0 {
            self.answer_waiting(error);
        } else {
            self.status.lost(error.clone());
        }
    }

    /// Tries again at once.
    pub(super) fn forget_refusals(&mut self, now: Instant) {
        self.refusals = 0;
        if let ContextState::Refused { until } = &mut self.state {
            *until = now;
        }
    }

    pub(super) fn answer_waiting(&mut self, error: &EngineError) {
        while let Some(pending) = self.waiting.pop() {
            pending.reply.send(Err(error.clone()));
        }
    }

    /// Notes that its worker is gone. Returns whether it is given up, because it was new and
    /// workers died of it.
    pub(super) fn lost_worker(&mut self, cause: &EngineError) -> bool {
        self.sent = 0;
        self.status.down();
        if self.is_new() && matches!(self.state, ContextState::Opening { .. }) {
            self.opening_deaths += 1;
            if self.opening_deaths >= OPENING_DEATHS_MAX {
                self.started(Err(cause.clone()));
                return true;
            }
        }
        self.state = ContextState::Absent;
        false
    }
}
