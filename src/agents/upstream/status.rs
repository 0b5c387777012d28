//! How a pool's servers stand, for metrics and people.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::breaker::BreakerState;
use crate::agents::Failure;

/// How one server stands. The counts are since the start of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Host, port and model.
    pub name: Arc<str>,
    /// Requests that it has now.
    pub in_flight: u32,
    pub concurrent_max: u32,
    /// Whether it answered when it was last looked at.
    pub is_healthy: bool,
    pub breaker: BreakerState,
    /// Requests that were sent, further attempts among them.
    pub requests: u64,
    /// Those of them that were further attempts.
    pub retries: u64,
    /// Those of them that failed, by kind. A kind that never came is not there.
    pub failures: BTreeMap<Failure, u64>,
}
