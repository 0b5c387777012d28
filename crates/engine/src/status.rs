//! An engine's observable state.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::wire::Facts;
use super::{EngineCounts, EngineError};

/// An engine's state at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// The engine's name.
    pub name: String,
    /// True if a worker is loaded and takes turns.
    pub ready: bool,
    /// True if there is no worker because none is needed; the next request starts one.
    pub idle: bool,
    /// Workers that were started after the first one.
    pub restarts: u32,
    /// Requests without a reply yet.
    pub in_flight: usize,
    /// The model: name, parameters, size.
    pub model: String,
    /// The device: name and description.
    pub device: String,
    /// Actual size of the context's KV pool, in tokens.
    pub context_tokens: u32,
    /// Longest prompt plus generation, in tokens.
    pub turn_tokens_max: u32,
    /// Time since the last message from the worker, in milliseconds; at most about 100 while it
    /// decodes.
    pub last_decode_ms_ago: Option<u64>,
    /// Counters since the worker started.
    pub counts: EngineCounts,
    /// Process id of the worker; none for a thread, and while there is no worker.
    pub worker_pid: Option<u32>,
    /// Why the engine is out of service, if it is: lost until a worker is ready again, or shut
    /// down.
    pub failure: Option<EngineError>,
}

/// The state that the pump writes and the engine's handles read.
pub(super) struct StatusCell {
    name: String,
    in_flight: Arc<AtomicUsize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: bool,
    idle: bool,
    restarts: u32,
    facts: Facts,
    heard: Option<Instant>,
    counts: EngineCounts,
    pid: Option<u32>,
    failure: Option<EngineError>,
    closed: bool,
}

impl StatusCell {
    pub(super) fn new(name: String) -> Self {
        Self { name, in_flight: Arc::default(), state: Mutex::default() }
    }

    pub(super) fn in_flight(&self) -> &Arc<AtomicUsize> {
        &self.in_flight
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every write is a plain assignment, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn started(&self, pid: Option<u32>, again: bool) {
        let mut state = self.state();
        state.pid = pid;
        state.idle = false;
        state.restarts += u32::from(again);
    }

    pub(super) fn ready(&self, facts: Facts) {
        let mut state = self.state();
        state.ready = true;
        state.failure = None;
        // A new worker counts from 0.
        state.counts = EngineCounts::default();
        state.facts = facts;
    }

    pub(super) fn heard(&self, now: Instant) {
        self.state().heard = Some(now);
    }

    pub(super) fn counted(&self, counts: EngineCounts) {
        self.state().counts = counts;
    }

    pub(super) fn down(&self) {
        let mut state = self.state();
        state.ready = false;
        state.pid = None;
    }

    /// Records that there is no worker because none is needed.
    pub(super) fn idle(&self) {
        self.down();
        self.state().idle = true;
    }

    pub(super) fn lost(&self, error: EngineError) {
        self.state().failure = Some(error);
    }

    pub(super) fn ended(&self) {
        self.down();
        let mut state = self.state();
        state.idle = false;
        state.closed = true;
        state.failure.get_or_insert(EngineError::Shutdown);
    }

    /// Returns whether the context is closed for good.
    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(super) fn read(&self) -> EngineStatus {
        let state = self.state();
        let ago = |heard: Instant| u64::try_from(heard.elapsed().as_millis()).unwrap_or(u64::MAX);
        EngineStatus {
            name: self.name.clone(),
            ready: state.ready,
            idle: state.idle,
            restarts: state.restarts,
            in_flight: self.in_flight.load(Ordering::Relaxed),
            model: state.facts.model.clone(),
            device: state.facts.device.clone(),
            context_tokens: state.facts.context_tokens,
            turn_tokens_max: state.facts.turn_tokens_max,
            last_decode_ms_ago: state.heard.map(ago),
            counts: state.counts,
            worker_pid: state.pid,
            failure: state.failure.clone(),
        }
    }
}
