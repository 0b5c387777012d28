//! Decides when a process may be restarted: exponential backoff, and a limit within a sliding
//! window.

use std::time::Duration;

use tokio::time::Instant;

use prime_retry::{Backoff, SlidingWindow};

/// The first restart in a window is immediate; these delays precede the later ones.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(50), max: Duration::from_secs(5) };

pub(super) struct RestartPolicy {
    restarts_max: u32,
    faults: SlidingWindow,
}

impl RestartPolicy {
    pub fn new(restarts_max: u32, window: Duration) -> Self {
        Self { restarts_max, faults: SlidingWindow::new(window) }
    }

    /// Records that a process exited or had to be terminated.
    pub fn record(&mut self, now: Instant) {
        // One fault more than the limit is enough to see that it is reached; older ones do not
        // matter.
        self.faults.record(now.into_std(), self.restarts_max.saturating_add(1));
    }

    /// How long to wait before the next start.
    ///
    /// # Errors
    /// The limit is reached: how long until another restart is allowed.
    pub fn delay(&mut self, now: Instant) -> Result<Duration, Duration> {
        let now = now.into_std();
        let count = self.faults.count(now);
        if count > self.restarts_max {
            return Err(self.faults.until_next_leaves(now));
        }

        let delay = count.checked_sub(2).map_or(Duration::ZERO, |retry| BACKOFF.delay(retry));
        let last = self.faults.last().unwrap_or(now);
        Ok((last + delay).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_the_window_slides() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let mut restarts = RestartPolicy::new(3, ms(1000));
        assert_eq!(restarts.delay(at(0)), Ok(ms(0)), "the first start is not a restart");
        restarts.record(at(0));
        assert_eq!(restarts.delay(at(0)), Ok(ms(0)));
        restarts.record(at(10));
        assert_eq!(restarts.delay(at(10)), Ok(ms(50)));
        assert_eq!(restarts.delay(at(40)), Ok(ms(20)), "counted from the fault");
        restarts.record(at(60));
        assert_eq!(restarts.delay(at(60)), Ok(ms(100)));
        restarts.record(at(160));
        assert_eq!(restarts.delay(at(200)), Err(ms(800)), "four faults, three restarts");
        assert_eq!(restarts.delay(at(1000)), Ok(ms(0)), "the first fault has left the window");
        assert_eq!(RestartPolicy::new(0, ms(10)).delay(start), Ok(ms(0)));
    }

    #[test]
    fn the_delay_is_bounded() {
        let start = Instant::now();
        let mut restarts = RestartPolicy::new(1000, Duration::from_mins(10));
        (0..500).for_each(|_| restarts.record(start));
        assert_eq!(restarts.delay(start), Ok(Duration::from_secs(5)));
    }
}
