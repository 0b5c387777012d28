//! What became of proposals that were begun before the verdict on the step before them.

use serde::{Deserialize, Serialize};

/// Proposals that were begun early, by what became of them. Those under way when their round ends are not counted, as
/// turns under way are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Speculations {
    /// The step before was committed, and the proposal was made use of.
    pub used: u64,
    /// It was thrown away: the step before was not committed, or the proposal failed.
    pub wasted: u64,
}

impl Speculations {
    pub fn add(&mut self, other: Self) {
        self.used += other.used;
        self.wasted += other.wasted;
    }

    /// Whether there were none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
