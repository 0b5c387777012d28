//! How often an agent may be restarted.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Restarts of one agent that are tolerated within a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartLimit {
    pub restarts_max: u32,
    pub window: Duration,
}

/// The recent restarts of one agent.
#[derive(Debug, Default)]
pub struct RestartLog(VecDeque<Instant>);

impl RestartLog {
    /// Records a restart at `now`; returns false, and records nothing, when the limit is reached.
    pub fn allows(&mut self, limit: RestartLimit, now: Instant) -> bool {
        while self.0.front().is_some_and(|first| now.duration_since(*first) >= limit.window) {
            self.0.pop_front();
        }

        if self.0.len() >= limit.restarts_max as usize {
            return false;
        }

        self.0.push_back(now);
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
        let mut log = RestartLog::default();

        assert!(log.allows(limit, at(0)) && log.allows(limit, at(5)));
        assert!(!log.allows(limit, at(9)), "a third within ten seconds");
        assert!(log.allows(limit, at(10)), "the first is ten seconds old");
    }
}
