//! When a server is left alone: after failures in a row, for a time; then one request on trial decides. No clock here.

use std::time::Duration;

use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Failures in a row that open it; 0 = never.
    failures_max: u32,
    rest: Duration,
    in_a_row: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// No requests before this time, then one.
    Open(Instant),
    /// That one is under way.
    OnTrial,
}

/// How a breaker stands, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests go through.
    Closed,
    /// The server is left alone.
    Open,
    /// The server gets, or has got, one request on trial.
    HalfOpen,
}

impl BreakerState {
    /// The label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What a breaker says to one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Free,
    OnTrial,
    Refused,
}

impl Breaker {
    pub fn new(failures_max: u32, rest: Duration) -> Self {
        Self { failures_max, rest, in_a_row: 0, state: State::Closed }
    }

    pub fn admission(&self, now: Instant) -> Admission {
        match self.state {
            State::Closed => Admission::Free,
            State::Open(until) if now >= until => Admission::OnTrial,
            State::Open(_) | State::OnTrial => Admission::Refused,
        }
    }

    /// The one request on trial begins.
    pub fn begin_trial(&mut self) {
        self.state = State::OnTrial;
    }

    /// The request on trial came to no result: the next one is on trial.
    pub fn abandon_trial(&mut self, now: Instant) {
        self.state = State::Open(now);
    }

    /// A request went well. Of those that were under way when it opened, nothing is concluded.
    pub fn succeeded(&mut self, is_trial: bool) {
        if is_trial || self.state == State::Closed {
            self.in_a_row = 0;
            self.state = State::Closed;
        }
    }

    /// A request failed. Until when the server is left alone, if this opened it.
    pub fn failed(&mut self, is_trial: bool, now: Instant) -> Option<Instant> {
        if !is_trial && self.state != State::Closed {
            return None;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if !is_trial && (self.failures_max == 0 || self.in_a_row < self.failures_max) {
            return None;
        }
        let until = now + self.rest;
        self.state = State::Open(until);
        Some(until)
    }

    pub fn state(&self, now: Instant) -> BreakerState {
        match (self.state, self.admission(now)) {
            (State::Closed, _) => BreakerState::Closed,
            (State::OnTrial, _) | (_, Admission::OnTrial) => BreakerState::HalfOpen,
            _ => BreakerState::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(10);
    const BEFORE: Duration = Duration::from_millis(9_999);

    #[test]
    fn failures_in_a_row_open_it_and_a_trial_decides() {
        let now = Instant::now();
        let mut breaker = Breaker::new(3, REST);
        breaker.failed(false, now);
        breaker.failed(false, now);
        breaker.succeeded(false);
        assert_eq!([breaker.failed(false, now), breaker.failed(false, now)], [None, None], "a success begins anew");
        assert_eq!(breaker.state(now), BreakerState::Closed);
        assert_eq!(breaker.failed(false, now), Some(now + REST));
        assert_eq!((breaker.state(now), breaker.admission(now + BEFORE)), (BreakerState::Open, Admission::Refused));

        assert_eq!(breaker.admission(now + REST), Admission::OnTrial);
        breaker.begin_trial();
        assert_eq!(breaker.admission(now + REST * 9), Admission::Refused, "one trial at a time");
        assert_eq!(breaker.state(now), BreakerState::HalfOpen);
        assert_eq!(breaker.failed(true, now + REST), Some(now + REST * 2), "one failure is enough");
        breaker.begin_trial();
        breaker.succeeded(true);
        assert_eq!(breaker.admission(now), Admission::Free);
    }

    #[test]
    fn what_was_under_way_when_it_opened_decides_nothing() {
        let now = Instant::now();
        let mut breaker = Breaker::new(1, REST);
        breaker.failed(false, now);
        breaker.succeeded(false);
        assert_eq!(breaker.failed(false, now + BEFORE), None);
        assert_eq!(breaker.admission(now + REST), Admission::OnTrial, "neither closed nor prolonged");
    }

    #[test]
    fn a_trial_without_a_result_makes_room_for_another() {
        let now = Instant::now();
        let mut breaker = Breaker::new(1, REST);
        breaker.failed(false, now);
        breaker.begin_trial();
        breaker.abandon_trial(now + REST);
        assert_eq!(breaker.admission(now + REST), Admission::OnTrial);
    }

    #[test]
    fn without_a_limit_it_never_opens() {
        let now = Instant::now();
        let mut breaker = Breaker::new(0, REST);
        assert!((0..100).all(|_| breaker.failed(false, now).is_none()));
        assert_eq!(breaker.admission(now), Admission::Free);
    }
}
