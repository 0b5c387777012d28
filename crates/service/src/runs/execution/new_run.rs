//! A run to accept, and the result of its acceptance.

use std::sync::Arc;

use crate::runs::record::RunRecord;
use crate::runs::spec::RunSpec;
use prime_bench::tasks::Problem;
use prime_journal::IdempotencyKey;

/// A run to accept.
pub struct NewRun {
    /// The owner: the name of the client's key; empty without keys.
    pub owner: String,
    /// The client's idempotency key, if it sent one.
    pub key: Option<IdempotencyKey>,
    /// Everything that determines what the run does.
    pub spec: RunSpec,
    /// The problem to solve.
    pub problem: Arc<dyn Problem>,
}

/// A run that was accepted now, or earlier under the same key.
pub struct Accepted {
    /// The run as its users see it.
    pub record: RunRecord,
    /// True if it was accepted now.
    pub is_new: bool,
}
