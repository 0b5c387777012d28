//! Exponential back-off for reconnecting to a daemon, with a limit on the total time.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause: about the time that a daemon needs to restart.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause, unless the daemon asks for more.
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Backoff {
    /// How long to keep trying.
    patience: Duration,
    next: Duration,
    /// When the current failure began.
    since: Option<Instant>,
}

impl Backoff {
    pub fn new(patience: Duration) -> Self {
        Self { patience, next: FIRST, since: None }
    }

    /// Resets after a success.
    pub fn reset(&mut self) {
        self.next = FIRST;
        self.since = None;
    }

    /// Whether attempts have failed since the last success.
    pub fn is_failing(&self) -> bool {
        self.since.is_some()
    }

    /// The pause before the next attempt, `at_least` as long as given; `None` when time is up.
    pub fn pause(&mut self, now: Instant, at_least: Option<Duration>) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let left = self.patience.checked_sub(now.duration_since(since)).filter(|left| !left.is_zero())?;
        let pause = self.next.max(at_least.unwrap_or_default());
        self.next = (self.next * 2).min(LONGEST);
        Some(pause.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_end_with_patience() {
        let mut backoff = Backoff::new(Duration::from_secs(20));
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        while let Some(pause) = backoff.pause(now, None) {
            pauses.push(u64::try_from(pause.as_millis()).unwrap());
            now += pause;
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 3_700]);
        backoff.reset();
        assert_eq!(backoff.pause(now, None), Some(FIRST), "a success resets it");
    }

    #[test]
    fn a_daemons_retry_after_is_respected() {
        let mut backoff = Backoff::new(Duration::from_mins(1));
        let now = Instant::now();
        assert_eq!(backoff.pause(now, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(backoff.pause(now, Some(Duration::from_hours(1))), Some(Duration::from_mins(1)), "within patience");
        assert_eq!(Backoff::new(Duration::ZERO).pause(now, None), None, "without patience there is no second attempt");
    }
}
