//! When a process may be restarted: exponential backoff, and a limit within a sliding window.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use prime_retry::Backoff;

/// The first restart in a window is immediate; these delays precede the later ones.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(50), max: Duration::from_secs(5) };

pub(super) struct RestartPolicy {
    max: u32,
    window: Duration,
    faults: VecDeque<Instant>,
}

impl RestartPolicy {
    pub fn new(max: u32, window: Duration) -> Self {
        Self { max, window, faults: VecDeque::new() }
    }

    /// Records that a process exited or had to be terminated.
    pub fn record(&mut self, now: Instant) {
        self.forget(now);
        // More than `max` + 1 are never needed.
        if self.faults.len() > self.max as usize {
            self.faults.pop_front();
        }
        self.faults.push_back(now);
    }

    /// How long to wait before the next start.
    ///
    /// # Errors
    /// The limit is reached: how long until another restart is allowed.
    pub fn delay(&mut self, now: Instant) -> Result<Duration, Duration> {
        self.forget(now);
        let count = u32::try_from(self.faults.len()).unwrap_or(u32::MAX);
        let (Some(first), Some(last)) = (self.faults.front(), self.faults.back()) else {
            return Ok(Duration::ZERO);
        };
        if count > self.max {
            return Err((*first + self.window).saturating_duration_since(now));
        }
        let delay = count.checked_sub(2).map_or(Duration::ZERO, |retry| BACKOFF.delay(retry));
        Ok((*last + delay).saturating_duration_since(now))
    }

    fn forget(&mut self, now: Instant) {
        while self.faults.front().is_some_and(|fault| now.duration_since(*fault) >= self.window) {
            self.faults.pop_front();
        }
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
