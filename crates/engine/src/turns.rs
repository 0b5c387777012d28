//! Turns on the parent's side: the reply that is owed, the attempts that were made, the deadline.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::wire::TurnId;
use super::{EngineError, Generation, Request};

/// The function that takes a turn's result.
type Callback = Box<dyn FnOnce(Result<Generation, EngineError>) + Send>;

/// Names a request of one engine, for taking it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ticket(pub(super) u64);

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
    pub(super) ticket: Ticket,
    pub(super) request: Request,
    pub(super) reply: Reply,
    /// How often a worker was given it.
    pub(super) attempts: u8,
}

/// The turns that the worker has, in the order in which they were sent.
#[derive(Default)]
pub(super) struct Sents {
    turns: BTreeMap<TurnId, (Held, Instant)>,
    tickets: HashMap<Ticket, TurnId>,
}

impl Sents {
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn insert(&mut self, id: TurnId, held: Held, now: Instant) {
        self.tickets.insert(held.ticket, id);
        self.turns.insert(id, (held, now));
    }

    pub(super) fn remove(&mut self, id: TurnId) -> Option<Held> {
        let (held, _) = self.turns.remove(&id)?;
        self.tickets.remove(&held.ticket);
        Some(held)
    }

    /// Takes back the turn of a request.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<(TurnId, Held)> {
        let id = *self.tickets.get(&ticket)?;
        Some((id, self.remove(id)?))
    }

    /// Takes all turns, the oldest first.
    pub(super) fn take(&mut self) -> impl DoubleEndedIterator<Item = Held> + use<> {
        self.tickets.clear();
        std::mem::take(&mut self.turns).into_values().map(|(held, _)| held)
    }

    /// When the worker counts as hung unless something arrives before: a worker that has turns is never silent for long.
    pub(super) fn deadline(&self, heard: Instant, silence_max: Duration) -> Option<Instant> {
        let (_, oldest) = self.turns.values().next()?;
        Some((*oldest).max(heard) + silence_max)
    }
}
