//! The paper's training curriculum (table "Training Curriculum Phases"): all tasks, at levels that
//! grow harder.

use crate::tasks::Difficulty;

/// A range of training epochs, both ends included, and the levels of its instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The phase's name, such as `warm-up`.
    pub name: &'static str,
    /// Counted from 1.
    pub first_epoch: u32,
    /// The last epoch of the phase.
    pub last_epoch: u32,
    /// The levels whose instances the phase trains on.
    pub difficulties: &'static [Difficulty],
}

/// The paper's three phases (table "Training Curriculum Phases").
pub const PHASES: [Phase; 3] = [
    Phase { name: "warm-up", first_epoch: 1, last_epoch: 5, difficulties: &[Difficulty::Easy] },
    Phase {
        name: "intermediate",
        first_epoch: 6,
        last_epoch: 15,
        difficulties: &[Difficulty::Easy, Difficulty::Medium],
    },
    Phase { name: "full", first_epoch: 16, last_epoch: 30, difficulties: &Difficulty::ALL },
];
