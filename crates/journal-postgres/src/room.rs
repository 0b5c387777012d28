//! The limit on open runs over all nodes, as far as this node knows how much of it is taken. The
//! store decides.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Room {
    /// 0: no limit.
    most: AtomicU64,
    /// Open runs that other nodes hold, or none.
    elsewhere: AtomicU64,
    /// Commits that accept runs have to be alone to count them.
    is_crowded: AtomicBool,
}

impl Room {
    pub(super) fn limit(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> Option<u64> {
        Some(self.most.load(Ordering::Relaxed)).filter(|most| *most > 0)
    }

    pub(super) fn elsewhere(&self) -> u64 {
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// As the store counted them.
    pub(super) fn count(&self, elsewhere: u64) {
        self.elsewhere.store(elsewhere, Ordering::Relaxed);
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    pub(super) fn set_crowded(&self, is_crowded: bool) {
        self.is_crowded.store(is_crowded, Ordering::Relaxed);
    }
}
