//! Counters of proposals that were started before the verdict on the step before them.

use serde::{Deserialize, Serialize};

/// Proposals that were started early, by result. Like turns, those in flight at the end of their
/// round are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Speculations {
    /// The step before was committed, and the proposal was used.
    pub used: u64,
    /// Discarded: the step before was not committed, or the proposal failed.
    pub wasted: u64,
}

impl Speculations {
    /// Adds the counts of another.
    #[inline]
    pub fn add(&mut self, other: Self) {
        self.used += other.used;
        self.wasted += other.wasted;
    }

    /// Returns whether both counters are zero.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
