//! Circuit breaker: opens after consecutive failures, and after a cooldown lets one trial request
//! decide. Reads no clock.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Breaker {
    /// Consecutive failures that open it; 0 = never.
    failures_max: u32,
    cooldown: Duration,
    consecutive_failures: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// Rejects requests until this time, then admits one trial.
    Open(Instant),
    /// The trial request is in flight.
    HalfOpen,
}

/// A breaker's state, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests go through.
    Closed,
    /// Requests are rejected.
    Open,
    /// One trial request is admitted or in flight.
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

/// What a breaker decides about one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Allowed,
    Trial,
    Rejected,
}

impl Breaker {
    pub fn new(failures_max: u32, cooldown: Duration) -> Self {
        Self { failures_max, cooldown, consecutive_failures: 0, state: State::Closed }
    }

    pub fn admission(&self, now: Instant) -> Admission {
        match self.state {
            State::Closed => Admission::Allowed,
            State::Open(until) if now >= until => Admission::Trial,
            State::Open(_) | State::HalfOpen => Admission::Rejected,
        }
    }

    /// The trial request is about to be sent.
    pub fn begin_trial(&mut self) {
        self.state = State::HalfOpen;
    }

    /// The trial request was cancelled: the next one is the trial.
    pub fn abandon_trial(&mut self, now: Instant) {
        // Its cooldown is over already.
        self.state = State::Open(now);
    }

    /// Requests that were in flight when the breaker opened are ignored.
    pub fn succeeded(&mut self, is_trial: bool) {
        if is_trial || self.state == State::Closed {
            self.consecutive_failures = 0;
            self.state = State::Closed;
        }
    }

    /// Returns the end of the cooldown if this failure opened the breaker.
    pub fn failed(&mut self, is_trial: bool, now: Instant) -> Option<Instant> {
        if !is_trial && self.state != State::Closed {
            return None;
        }

        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        // A failed trial opens it again at once: the server has not recovered.
        if !is_trial && (self.failures_max == 0 || self.consecutive_failures < self.failures_max) {
            return None;
        }

        let until = now + self.cooldown;
        self.state = State::Open(until);
        Some(until)
    }

    pub fn state(&self, now: Instant) -> BreakerState {
        match (self.state, self.admission(now)) {
            (State::Closed, _) => BreakerState::Closed,
            (State::HalfOpen, _) | (_, Admission::Trial) => BreakerState::HalfOpen,
            _ => BreakerState::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(10);
    const BEFORE: Duration = Duration::from_millis(9_999);

    #[test]
    fn consecutive_failures_open_it_and_a_trial_decides() {
        let now = Instant::now();
        let mut breaker = Breaker::new(3, COOLDOWN);
        breaker.failed(false, now);
        breaker.failed(false, now);
        breaker.succeeded(false);

        assert_eq!(
            [breaker.failed(false, now), breaker.failed(false, now)],
            [None, None],
            "a success resets the count"
        );
        assert_eq!(breaker.state(now), BreakerState::Closed);

        assert_eq!(breaker.failed(false, now), Some(now + COOLDOWN));
        assert_eq!(
            (breaker.state(now), breaker.admission(now + BEFORE)),
            (BreakerState::Open, Admission::Rejected)
        );

        assert_eq!(breaker.admission(now + COOLDOWN), Admission::Trial);

        breaker.begin_trial();

        assert_eq!(
            breaker.admission(now + COOLDOWN * 9),
            Admission::Rejected,
            "one trial at a time"
        );
        assert_eq!(breaker.state(now), BreakerState::HalfOpen);
        assert_eq!(
            breaker.failed(true, now + COOLDOWN),
            Some(now + COOLDOWN * 2),
            "one failure is enough"
        );

        breaker.begin_trial();
        breaker.succeeded(true);

        assert_eq!(breaker.admission(now), Admission::Allowed);
    }

    #[test]
    fn requests_in_flight_when_it_opened_are_ignored() {
        let now = Instant::now();
        let mut breaker = Breaker::new(1, COOLDOWN);
        breaker.failed(false, now);
        breaker.succeeded(false);
        assert_eq!(breaker.failed(false, now + BEFORE), None);
        assert_eq!(
            breaker.admission(now + COOLDOWN),
            Admission::Trial,
            "neither closed nor prolonged"
        );
    }

    #[test]
    fn a_cancelled_trial_admits_another() {
        let now = Instant::now();
        let mut breaker = Breaker::new(1, COOLDOWN);
        breaker.failed(false, now);
        breaker.begin_trial();
        breaker.abandon_trial(now + COOLDOWN);
        assert_eq!(breaker.admission(now + COOLDOWN), Admission::Trial);
    }

    #[test]
    fn without_a_limit_it_never_opens() {
        let now = Instant::now();
        let mut breaker = Breaker::new(0, COOLDOWN);
        assert!((0..100).all(|_| breaker.failed(false, now).is_none()));
        assert_eq!(breaker.admission(now), Admission::Allowed);
    }
}
