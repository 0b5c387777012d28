//! How many steps of a run need review.

use serde::{Deserialize, Serialize};

/// Number of a run's steps that need review because its verifiers disagree on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reviews {
    /// Steps that need review.
    pub needed: u64,
    /// Steps without a review.
    pub open: u64,
    /// Steps whose newest review rejects them.
    pub rejected: u64,
}

impl Reviews {
    /// The counts; `None` when no step needs review.
    pub fn of(needed: u64, open: u64, rejected: u64) -> Option<Self> {
        (needed > 0).then_some(Self { needed, open, rejected })
    }
}
