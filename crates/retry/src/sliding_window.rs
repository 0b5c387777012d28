//! How many events happened lately: what limits on restarts count.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The times of recent events. An event leaves the window when it is as old as the window is long.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    length: Duration,
    /// The oldest first.
    times: VecDeque<Instant>,
}

impl SlidingWindow {
    /// An empty window.
    pub fn new(length: Duration) -> Self {
        Self { length, times: VecDeque::new() }
    }

    /// How long events stay in the window.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Records an event, and keeps the latest `kept` at most.
    pub fn record(&mut self, now: Instant, kept: u32) {
        self.slide(now);
        self.times.push_back(now);
        while self.times.len() > kept as usize {
            self.times.pop_front();
        }
    }

    /// The number of events in the window that ends at `now`.
    pub fn count(&mut self, now: Instant) -> u32 {
        self.slide(now);
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    /// The latest event, if it was in the window when that was last counted.
    pub fn last(&self) -> Option<Instant> {
        self.times.back().copied()
    }

    /// How long until the oldest event leaves; zero if there is none.
    pub fn until_next_leaves(&self, now: Instant) -> Duration {
        let oldest = self.times.front();
        oldest.map_or(Duration::ZERO, |time| (*time + self.length).saturating_duration_since(now))
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.times.clear();
    }

    fn slide(&mut self, now: Instant) {
        while self.times.front().is_some_and(|time| now.duration_since(*time) >= self.length) {
            self.times.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an origin; the test advances it itself")]
    fn events_leave_when_they_are_as_old_as_the_window() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut window = SlidingWindow::new(Duration::from_secs(10));
        assert_eq!((window.count(at(0)), window.last()), (0, None));
        assert_eq!(window.until_next_leaves(at(0)), Duration::ZERO);

        window.record(at(0), 3);
        window.record(at(4), 3);
        assert_eq!(window.count(at(9)), 2);
        assert_eq!(window.until_next_leaves(at(9)), Duration::from_secs(1));
        assert_eq!(window.count(at(10)), 1, "the first is ten seconds old");

        for second in 11..16 {
            window.record(at(second), 3);
        }
        assert_eq!((window.count(at(15)), window.last()), (3, Some(at(15))), "the latest three");
        window.clear();
        assert_eq!(window.count(at(15)), 0);
    }
}
