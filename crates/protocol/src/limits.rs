//! When a trajectory stops trying: at a state, and as a whole.

use serde::{Deserialize, Serialize};

/// Limits of each trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Proposals at one state before it is popped; if its choices are finite, rejected ones do not
    /// count.
    pub attempts_max: u32,
    /// Proposals at one state that repeat a rejected line, or are retried, before it is popped.
    pub repetitions_max: u32,
    /// Pops after which the trajectory gives up.
    pub pops_max: u64,
    /// Proposals without progress after which the trajectory gives up. Progress is a step deeper
    /// than any before, or the proof that a state is a dead end.
    pub stuck_after: u32,
    /// Frames between two snapshots: the most that a pop replays.
    pub snapshot_every_frames: usize,
}

impl Limits {
    /// The limits of the default configuration.
    pub const DEFAULT: Self = Self {
        attempts_max: 32,
        repetitions_max: 8,
        pops_max: 256,
        stuck_after: 256,
        snapshot_every_frames: 256,
    };
}
