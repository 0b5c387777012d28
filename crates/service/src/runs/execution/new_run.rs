//! What a run is accepted from, and what its acceptance says.

use std::sync::Arc;

use crate::runs::record::RunRecord;
use crate::runs::spec::RunSpec;
use prime_bench::tasks::Problem;
use prime_journal::IdempotencyKey;

/// A run to accept.
pub struct NewRun {
    pub owner: String,
    pub key: Option<IdempotencyKey>,
    pub spec: RunSpec,
    pub problem: Arc<dyn Problem>,
}

/// A run that was accepted now, or earlier under the same key.
pub struct Accepted {
    pub record: RunRecord,
    pub is_new: bool,
}
