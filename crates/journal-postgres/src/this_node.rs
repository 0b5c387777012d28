//! This node's state of the leases, and whom to tell when it changes. Commits, heartbeats, hints and
//! needs share it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::notice::{Notice, OnNotice};
use prime_journal::lease::{Effect, Node, Timing};

pub(super) struct ThisNode {
    node: Mutex<Node<String>>,
    /// Ends the wait before the next request.
    pub(super) wake: Notify,
    on_notice: Option<OnNotice>,
}

impl ThisNode {
    pub(super) fn new(timing: Timing, capacity: usize, on_notice: Option<OnNotice>) -> Self {
        Self { node: Mutex::new(Node::new(timing, capacity)), wake: Notify::new(), on_notice }
    }

    /// Locks the node's state. The guard must not live across an `await`.
    pub(super) fn node(&self) -> MutexGuard<'_, Node<String>> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn announce(&self, effects: Vec<Effect<String>>) {
        for effect in effects {
            self.notify(Notice::Lease(effect));
        }
    }

    /// Must be called without a lock: the receiver may call the journal.
    pub(super) fn notify(&self, notice: Notice) {
        if let Some(on_notice) = &self.on_notice {
            on_notice(notice);
        }
    }

    /// Looks for free runs at once.
    pub(super) fn look_for_runs(&self) {
        self.node().look_for_runs();
        self.wake.notify_one();
    }
}
