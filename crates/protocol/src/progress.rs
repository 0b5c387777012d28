//! Measures whether a trajectory makes progress. Progress is a step deeper than any before, or the
//! proof that a state is a dead end.

use serde::{Deserialize, Serialize};

use super::rejection::StuckAt;

/// How deep a trajectory has come, and how many proposals ago.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The greatest number of committed steps so far.
    deepest: usize,
    idle_proposals: u32,
    /// The deepest state that used up its attempts since `deepest` last grew.
    stuck_at: Option<Box<StuckAt>>,
}

impl Progress {
    /// Proposals since the last progress.
    #[inline]
    pub fn idle_proposals(&self) -> u32 {
        self.idle_proposals
    }

    #[inline]
    pub(super) fn proposed(&mut self) {
        self.idle_proposals = self.idle_proposals.saturating_add(1);
    }

    /// Notes that a committed step led to this depth.
    #[inline]
    pub(super) fn reaches(&mut self, depth: usize) {
        if depth > self.deepest {
            *self = Self { deepest: depth, ..Self::default() };
        }
    }

    /// Notes that the trajectory goes back on purpose: from here on, every step is progress.
    pub(super) fn retreats(&mut self, depth: usize) {
        (self.deepest, self.idle_proposals) = (depth, 0);
    }

    /// Notes that a state was proved to be a dead end.
    pub(super) fn proved(&mut self) {
        self.idle_proposals = 0;
    }

    /// Notes that the trajectory got stuck at this depth.
    pub(super) fn note_stuck_at(&mut self, depth: usize, stuck: impl FnOnce() -> StuckAt) {
        if self.stuck_at.as_ref().is_none_or(|known| known.depth <= depth) {
            self.stuck_at = Some(Box::new(stuck()));
        }
    }

    pub(super) fn take_stuck_at(&mut self) -> Option<StuckAt> {
        self.stuck_at.take().map(|stuck| *stuck)
    }
}
