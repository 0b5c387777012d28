//! How often a process may be started again, and after which wait.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Wait before the second restart in a window; it doubles with each further one. The first is made at once.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

pub(super) struct Restarts {
    max: u32,
    window: Duration,
    faults: VecDeque<Instant>,
}

impl Restarts {
    pub fn new(max: u32, window: Duration) -> Self {
        Self { max, window, faults: VecDeque::new() }
    }

    /// A process had to be ended, or ended by itself.
    pub fn note(&mut self, now: Instant) {
        self.forget(now);
        // More than this are needed for nothing.
        if self.faults.len() > self.max as usize {
            self.faults.pop_front();
        }
        self.faults.push_back(now);
    }

    /// How long to wait before the next start.
    ///
    /// # Errors
    /// How long it will take until another restart is allowed.
    pub fn wait(&mut self, now: Instant) -> Result<Duration, Duration> {
        self.forget(now);
        let count = u32::try_from(self.faults.len()).unwrap_or(u32::MAX);
        let (Some(first), Some(last)) = (self.faults.front(), self.faults.back()) else { return Ok(Duration::ZERO) };
        if count > self.max {
            return Err((*first + self.window).saturating_duration_since(now));
        }
        let backoff = if count == 1 { Duration::ZERO } else { BACKOFF * 2_u32.saturating_pow((count - 2).min(16)) };
        Ok((*last + backoff.min(BACKOFF_MAX)).saturating_duration_since(now))
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
    fn waits_double_and_the_window_forgets() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ms = Duration::from_millis;
        let mut restarts = Restarts::new(3, ms(1000));
        assert_eq!(restarts.wait(at(0)), Ok(ms(0)), "the first start is none");
        restarts.note(at(0));
        assert_eq!(restarts.wait(at(0)), Ok(ms(0)));
        restarts.note(at(10));
        assert_eq!(restarts.wait(at(10)), Ok(ms(50)));
        assert_eq!(restarts.wait(at(40)), Ok(ms(20)), "counted from the fault");
        restarts.note(at(60));
        assert_eq!(restarts.wait(at(60)), Ok(ms(100)));
        restarts.note(at(160));
        assert_eq!(restarts.wait(at(200)), Err(ms(800)), "four faults, three restarts");
        assert_eq!(restarts.wait(at(1000)), Ok(ms(0)), "the first fault is forgotten");
        assert_eq!(Restarts::new(0, ms(10)).wait(start), Ok(ms(0)));
    }

    #[test]
    fn the_wait_is_bounded() {
        let start = Instant::now();
        let mut restarts = Restarts::new(1000, Duration::from_mins(10));
        (0..500).for_each(|_| restarts.note(start));
        assert_eq!(restarts.wait(start), Ok(Duration::from_secs(5)));
    }
}
