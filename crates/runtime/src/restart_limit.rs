//! How often an agent may be restarted.

use std::time::Duration;

use prime_retry::SlidingWindow;
use tokio::time::Instant;

/// Restarts of one agent that are tolerated within a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartLimit {
    /// Restarts that are allowed within `window`.
    pub restarts_max: u32,
    /// Length of the sliding window.
    pub window: Duration,
}

/// The recent restarts of one agent.
#[derive(Debug)]
pub struct RestartLog {
    restarts_max: u32,
    restarts: SlidingWindow,
}

impl RestartLog {
    pub fn new(limit: RestartLimit) -> Self {
        Self { restarts_max: limit.restarts_max, restarts: SlidingWindow::new(limit.window) }
    }

    /// Records a restart at `now`; returns false, and records nothing, when the limit is reached.
    pub fn allows(&mut self, now: Instant) -> bool {
        let now = now.into_std();
        if self.restarts.count(now) >= self.restarts_max {
            return false;
        }

        self.restarts.record(now, self.restarts_max);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_restarts_within_the_window_count() {
        let limit = RestartLimit { restarts_max: 2, window: Duration::from_secs(10) };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut log = RestartLog::new(limit);

        assert!(log.allows(at(0)) && log.allows(at(5)));
        assert!(!log.allows(at(9)), "a third within ten seconds");
        assert!(log.allows(at(10)), "the first is ten seconds old");
    }
}
