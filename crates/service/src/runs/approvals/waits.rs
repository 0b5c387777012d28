//! The steps of a run in memory that wait for approval. The run's observer keeps it, on the cell's
//! thread; the run's execution writes it to the journal.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use prime_journal::NewApproval;
use prime_protocol::TurnId;

#[derive(Default)]
struct Inner {
    waiting: Vec<(TurnId, NewApproval)>,
    /// Number of the run's last event when the list changed.
    seq: u64,
    is_suspended: bool,
}

/// What waits, and whether that is all that the run does.
#[derive(Default)]
pub struct Waits {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl Waits {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step waits, as the event `seq` says.
    pub fn add(&self, id: TurnId, approval: NewApproval, seq: u64) {
        let mut inner = self.inner();
        inner.waiting.push((id, approval));
        inner.seq = seq;
        drop(inner);
        self.changed.notify_one();
    }

    /// The step was decided, and its turn continues.
    pub fn settled(&self, id: TurnId) {
        // What was decided needs no other note in the journal.
        self.inner().waiting.retain(|(waits, _)| *waits != id);
    }

    /// The turns of a round are stale.
    pub fn round_over(&self, round: u32, seq: u64) {
        let mut inner = self.inner();
        let before = inner.waiting.len();
        inner.waiting.retain(|(id, _)| id.round > round);
        let has_changed = inner.waiting.len() < before;
        if has_changed {
            inner.seq = seq;
        }
        drop(inner);
        if has_changed {
            self.changed.notify_one();
        }
    }

    /// Nothing else is left to do.
    pub fn suspend(&self) {
        self.inner().is_suspended = true;
    }

    pub fn is_suspended(&self) -> bool {
        self.inner().is_suspended
    }

    pub fn is_empty(&self) -> bool {
        self.inner().waiting.is_empty()
    }

    /// Resolves when the list has changed. For one waiter.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What waits, and the event that has to be durable before the journal says so.
    pub fn list(&self) -> (Vec<NewApproval>, u64) {
        let inner = self.inner();
        (inner.waiting.iter().map(|(_, approval)| approval.clone()).collect(), inner.seq)
    }
}
