//! The mutable state of one backend: load, availability, last error, counters.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::backend::Backend;
use super::balancer::Candidate;
use super::breaker::{Admission, Breaker};
use super::status::UpstreamStatus;
use crate::Failure;

pub(super) struct BackendState {
    pub in_flight: u32,
    pub breaker: Breaker,
    pub is_healthy: bool,
    /// Set by `Retry-After`.
    pub paused_until: Option<Instant>,
    pub last_error: Option<String>,
    pub requests: u64,
    pub retries: u64,
    pub failures: BTreeMap<Failure, u64>,
}

impl BackendState {
    pub fn new(breaker: Breaker) -> Self {
        Self {
            in_flight: 0,
            breaker,
            is_healthy: true,
            paused_until: None,
            last_error: None,
            requests: 0,
            retries: 0,
            failures: BTreeMap::new(),
        }
    }

    /// Returns whether it may get a request, capacity aside.
    pub fn accepts_requests(&self, now: Instant) -> bool {
        self.is_available(now) && self.paused_until.is_none_or(|until| now >= until)
    }

    /// Returns whether it is healthy and its breaker lets requests through, `Retry-After` aside.
    pub fn is_available(&self, now: Instant) -> bool {
        self.is_healthy && self.breaker.admission(now) != Admission::Rejected
    }

    pub fn candidate(&self, index: usize, backend: &Backend) -> Candidate {
        Candidate {
            index,
            in_flight: self.in_flight,
            concurrent_max: backend.concurrent_max,
            weight: backend.weight,
            hash: backend.hash,
        }
    }

    pub fn status(&self, backend: &Backend, now: Instant) -> UpstreamStatus {
        UpstreamStatus {
            name: backend.name.clone(),
            in_flight: self.in_flight,
            concurrent_max: backend.concurrent_max,
            is_healthy: self.is_healthy,
            breaker: self.breaker.state(now),
            requests: self.requests,
            retries: self.retries,
            failures: self.failures.clone(),
        }
    }
}
