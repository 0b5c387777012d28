//! The limit on open runs of all nodes, and how much of it is used as far as this node knows. The
//! store decides.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Room {
    /// 0: no limit.
    most: AtomicU64,
    /// Number of open runs that this node does not hold.
    elsewhere: AtomicU64,
    /// True if commits that accept runs must do so one at a time, to count exactly.
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

    /// Notes the store's count.
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
