//! Pauses between attempts to reach a daemon that has gone away: they grow, and they come to an end.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause. A daemon that is started again needs about as long.
const FIRST: Duration = Duration::from_millis(100);
/// The longest, unless the daemon asks for more.
const LONGEST: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub struct Backoff {
    /// How long attempts go on.
    patience: Duration,
    next: Duration,
    /// When the present trouble began.
    since: Option<Instant>,
}

impl Backoff {
    pub fn new(patience: Duration) -> Self {
        Self { patience, next: FIRST, since: None }
    }

    /// All is well: what comes next is a new trouble.
    pub fn settle(&mut self) {
        self.next = FIRST;
        self.since = None;
    }

    /// Whether attempts have failed since all was well.
    pub fn is_troubled(&self) -> bool {
        self.since.is_some()
    }

    /// How long to pause before the next attempt, but at least so long; none when patience is spent.
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
        backoff.settle();
        assert_eq!(backoff.pause(now, None), Some(FIRST), "what is settled is forgotten");
    }

    #[test]
    fn a_daemon_that_names_a_time_is_given_it() {
        let mut backoff = Backoff::new(Duration::from_mins(1));
        let now = Instant::now();
        assert_eq!(backoff.pause(now, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(backoff.pause(now, Some(Duration::from_hours(1))), Some(Duration::from_mins(1)), "within patience");
        assert_eq!(Backoff::new(Duration::ZERO).pause(now, None), None, "no patience, no second attempt");
    }
}
