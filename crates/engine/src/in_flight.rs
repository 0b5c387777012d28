//! The parent's record of open requests: the reply that each is owed, and those that a worker is
//! computing.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::request_span::RequestSpan;
use super::wire::{ContextId, Timing, TurnId};
use super::{EngineError, Following, Generation, Progress, Request};

type Callback = Box<dyn FnOnce(Result<Generation, EngineError>) + Send>;

/// Identifies a request of one engine, so that it can be cancelled. Later requests have higher
/// tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(pub(super) u64);

/// A reply that is owed to a caller. It is sent exactly once: at the latest when this is dropped.
pub(super) struct Reply {
    callback: Option<Callback>,
    in_flight: Arc<AtomicUsize>,
    span: RequestSpan,
}

impl Reply {
    pub(super) fn new(callback: Callback, in_flight: &Arc<AtomicUsize>) -> Self {
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            callback: Some(callback),
            in_flight: Arc::clone(in_flight),
            span: RequestSpan::new(),
        }
    }

    pub(super) fn span(&mut self) -> &mut RequestSpan {
        &mut self.span
    }

    pub(super) fn send(mut self, result: Result<Generation, EngineError>) {
        self.call(result, None);
    }

    /// Sends what a worker answered.
    pub(super) fn send_answer(
        mut self,
        result: Result<Generation, EngineError>,
        timing: Option<Timing>,
    ) {
        self.call(result, timing);
    }

    fn call(&mut self, result: Result<Generation, EngineError>, timing: Option<Timing>) {
        if let Some(callback) = self.callback.take() {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            self.span.close(&result, timing);
            // One caller's panic must not cost the others their replies. The panic hook has
            // reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(result)));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.call(Err(EngineError::Shutdown), None);
    }
}

/// A request that has no reply yet.
pub(super) struct PendingRequest {
    pub(super) ticket: Ticket,
    /// The context that it is for.
    pub(super) context: ContextId,
    pub(super) request: Request,
    pub(super) reply: Reply,
    /// What its caller wants to know besides the answer.
    pub(super) following: Following,
    /// Number of times that it was sent to a worker.
    pub(super) attempts: u8,
}

impl PendingRequest {
    /// Reports the request's progress to its caller.
    pub(super) fn tell(&self, progress: Progress) {
        if let Some(watch) = &self.following.watch {
            // As with replies, one caller's panic must not affect the others.
            let _ = catch_unwind(AssertUnwindSafe(|| watch(progress)));
        }
    }
}

/// The turns that the worker has, in the order in which they were sent.
#[derive(Default)]
pub(super) struct InFlight {
    turns: BTreeMap<TurnId, PendingRequest>,
    tickets: HashMap<Ticket, TurnId>,
}

impl InFlight {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn get(&self, id: TurnId) -> Option<&PendingRequest> {
        self.turns.get(&id)
    }

    pub(super) fn insert(&mut self, id: TurnId, pending: PendingRequest) {
        self.tickets.insert(pending.ticket, id);
        self.turns.insert(id, pending);
    }

    pub(super) fn remove(&mut self, id: TurnId) -> Option<PendingRequest> {
        let pending = self.turns.remove(&id)?;
        self.tickets.remove(&pending.ticket);
        Some(pending)
    }

    /// Removes a request's turn.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<(TurnId, PendingRequest)> {
        let id = *self.tickets.get(&ticket)?;
        Some((id, self.remove(id)?))
    }

    /// Removes the turns of a context.
    pub(super) fn take_of(&mut self, context: ContextId) -> Vec<PendingRequest> {
        let turns = self.turns.extract_if(.., |_, pending| pending.context == context);
        let taken: Vec<_> = turns.map(|(_, pending)| pending).collect();
        for pending in &taken {
            self.tickets.remove(&pending.ticket);
        }
        taken
    }

    /// Removes all turns, the oldest first.
    pub(super) fn take(&mut self) -> impl DoubleEndedIterator<Item = PendingRequest> + use<> {
        self.tickets.clear();
        std::mem::take(&mut self.turns).into_values()
    }
}
