//! How one server stands at present: what it has to do, whether it may get more, what went wrong.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::breaker::{Admission, Breaker};
use super::choice::Candidate;
use super::member::Member;
use super::status::UpstreamStatus;
use crate::agents::Failure;

/// See the module.
pub(super) struct Standing {
    pub in_flight: u32,
    pub breaker: Breaker,
    pub is_healthy: bool,
    /// It has asked to be left alone until then.
    pub rests_until: Option<Instant>,
    /// What last went wrong.
    pub trouble: Option<String>,
    pub requests: u64,
    pub retries: u64,
    pub failures: BTreeMap<Failure, u64>,
}

impl Standing {
    pub fn new(breaker: Breaker) -> Self {
        Self {
            in_flight: 0,
            breaker,
            is_healthy: true,
            rests_until: None,
            trouble: None,
            requests: 0,
            retries: 0,
            failures: BTreeMap::new(),
        }
    }

    /// Whether it may get a request, if it has a place.
    pub fn is_open(&self, now: Instant) -> bool {
        self.is_there(now) && self.rests_until.is_none_or(|until| now >= until)
    }

    /// The same, but for a pause that it has asked for.
    pub fn is_there(&self, now: Instant) -> bool {
        self.is_healthy && self.breaker.admission(now) != Admission::Refused
    }

    pub fn candidate(&self, index: usize, member: &Member) -> Candidate {
        Candidate {
            index,
            in_flight: self.in_flight,
            concurrent_max: member.concurrent_max,
            weight: member.weight,
            hash: member.hash,
        }
    }

    pub fn status(&self, member: &Member, now: Instant) -> UpstreamStatus {
        UpstreamStatus {
            name: member.name.clone(),
            in_flight: self.in_flight,
            concurrent_max: member.concurrent_max,
            is_healthy: self.is_healthy,
            breaker: self.breaker.state(now),
            requests: self.requests,
            retries: self.retries,
            failures: self.failures.clone(),
        }
    }
}
