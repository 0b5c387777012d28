//! Reconnecting to a daemon that has gone away: exponential backoff until a deadline. Does not
//! sleep itself.

use std::time::Duration;

use tokio::time::Instant;

use prime_retry::Backoff;

/// A daemon needs about as long to restart as the first delay. `Retry-After` may exceed the last.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5) };

#[derive(Debug)]
pub struct Reconnect {
    /// How long to keep trying.
    patience: Duration,
    /// Failures since the last success.
    failures: u32,
    /// When the first of them occurred.
    since: Option<Instant>,
}

impl Reconnect {
    pub fn new(patience: Duration) -> Self {
        Self { patience, failures: 0, since: None }
    }

    /// The connection works.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.since = None;
    }

    /// True if attempts have failed since the last success.
    pub fn is_failing(&self) -> bool {
        self.since.is_some()
    }

    /// The delay before the next attempt, at least `retry_after`; `None` once `patience` has
    /// passed.
    pub fn delay(&mut self, now: Instant, retry_after: Option<Duration>) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let left =
            self.patience.checked_sub(now.duration_since(since)).filter(|left| !left.is_zero())?;
        let delay = BACKOFF.delay(self.failures).max(retry_after.unwrap_or_default());
        self.failures += 1;
        Some(delay.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_end_with_patience() {
        let mut reconnect = Reconnect::new(Duration::from_secs(20));
        let mut now = Instant::now();
        let mut delays = Vec::new();
        while let Some(delay) = reconnect.delay(now, None) {
            delays.push(u64::try_from(delay.as_millis()).unwrap());
            now += delay;
        }
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 3_700]);
        reconnect.succeeded();
        assert_eq!(reconnect.delay(now, None), Some(BACKOFF.initial), "a success resets it");
    }

    #[test]
    fn retry_after_is_honoured_within_patience() {
        let mut reconnect = Reconnect::new(Duration::from_mins(1));
        let now = Instant::now();
        assert_eq!(
            reconnect.delay(now, Some(Duration::from_secs(7))),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            reconnect.delay(now, Some(Duration::from_hours(1))),
            Some(Duration::from_mins(1)),
            "within patience"
        );
        assert_eq!(
            Reconnect::new(Duration::ZERO).delay(now, None),
            None,
            "no patience, no second attempt"
        );
    }
}
