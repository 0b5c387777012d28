//! Turns on the parent's side: the reply that is owed, the attempts that were made, the deadline.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::wire::TurnId;
use super::{EngineError, Generation, Request};

/// The function that takes a turn's result.
type Callback = Box<dyn FnOnce(Result<Generation, EngineError>) + Send>;

/// A reply that is owed. It is given exactly once: at the latest when this is dropped.
pub(super) struct Reply {
    callback: Option<Callback>,
    in_flight: Arc<AtomicUsize>,
}

impl Reply {
    pub(super) fn new(callback: Callback, in_flight: &Arc<AtomicUsize>) -> Self {
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self { callback: Some(callback), in_flight: Arc::clone(in_flight) }
    }

    pub(super) fn give(mut self, result: Result<Generation, EngineError>) {
        self.call(result);
    }

    fn call(&mut self, result: Result<Generation, EngineError>) {
        if let Some(callback) = self.callback.take() {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            // A caller's panic must not take the other callers' replies with it. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(result)));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.call(Err(EngineError::Shutdown));
    }
}

/// A request and who waits for it.
pub(super) struct Held {
    pub(super) request: Request,
    pub(super) reply: Reply,
    /// How often a worker was given it.
    pub(super) attempts: u8,
}

/// A turn that the worker has.
pub(super) struct Sent {
    pub(super) held: Held,
    /// When it was sent, or got its sequence if it has one.
    since: Instant,
    admitted: bool,
}

/// The turns that the worker has, in the order in which they were sent.
#[derive(Default)]
pub(super) struct Sents {
    turns: BTreeMap<TurnId, Sent>,
}

impl Sents {
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn insert(&mut self, id: TurnId, held: Held, now: Instant) {
        self.turns.insert(id, Sent { held, since: now, admitted: false });
    }

    pub(super) fn admitted(&mut self, id: TurnId, now: Instant) {
        if let Some(sent) = self.turns.get_mut(&id) {
            sent.since = now;
            sent.admitted = true;
        }
    }

    pub(super) fn remove(&mut self, id: TurnId) -> Option<Held> {
        self.turns.remove(&id).map(|sent| sent.held)
    }

    /// Takes all turns, the oldest first.
    pub(super) fn take(&mut self) -> impl DoubleEndedIterator<Item = Held> + use<> {
        std::mem::take(&mut self.turns).into_values().map(|sent| sent.held)
    }

    /// When the worker counts as hung unless something arrives before. A turn with a sequence has its own clock; one
    /// that still waits in the worker waits for others, so for it only a worker that says nothing at all is hung.
    pub(super) fn deadline(&self, heard: Instant, deadline: Duration) -> Option<Instant> {
        let start = |sent: &Sent| if sent.admitted { sent.since } else { sent.since.max(heard) };
        self.turns.values().map(start).min().map(|start| start + deadline)
    }
}
