//! The state of a pool's servers, for metrics and people.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::breaker::BreakerState;
use crate::Failure;

/// One server's state. Counts are since the process started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// Host, port and model.
    pub name: Arc<str>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Maximum number of requests in flight.
    pub concurrent_max: u32,
    /// True if it answered the last health probe.
    pub is_healthy: bool,
    /// State of its circuit breaker.
    pub breaker: BreakerState,
    /// Requests sent, retries included.
    pub requests: u64,
    /// Requests among them that were retries.
    pub retries: u64,
    /// Failed requests by kind; kinds that never occurred are absent.
    pub failures: BTreeMap<Failure, u64>,
}
