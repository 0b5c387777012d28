//! What a search over partial trajectories did, as results say it.

use serde::{Deserialize, Serialize};

/// Counts of the last round of `particle_filter` or `uct`; those of the other one are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchCounts {
    /// Times that the particles were resampled.
    pub resamplings: u64,
    /// Particles that died: their proposal was rejected, or they reached T_max without an answer.
    pub deaths: u64,
    /// Simulations of the tree search that have ended.
    pub simulations: u64,
    /// States of the tree.
    pub states: u64,
    /// Accepted steps to a state that the tree had already.
    pub merged: u64,
}
