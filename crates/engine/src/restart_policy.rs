//! Decides when a dead worker is replaced: at once, after a short pause, or after a growing one
//! while the engine counts as lost. It never gives up, because the cause of the deaths may go away.

use std::time::{Duration, Instant};

use prime_retry::{Backoff, SlidingWindow};

/// Pauses before the second restart in a window and those after it. The first restart has none.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(50), max: Duration::from_secs(5) };

/// Pauses before the restarts of a lost engine.
const LOST_BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1) };

pub(super) struct RestartPolicy {
    restarts_max: u32,
    deaths: SlidingWindow,
    /// Deaths since the engine was lost, the one that lost it included; 0 while it is not.
    lost_deaths: u32,
    /// When the current worker began to take turns.
    ready_since: Option<Instant>,
}

/// What follows a death.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Restart {
    pub(super) pause: Duration,
    /// The engine is lost until a worker is ready again: its workers died this often in a row.
    pub(super) lost_after: Option<u32>,
}

impl RestartPolicy {
    pub(super) fn new(restarts_max: u32, window: Duration) -> Self {
        let deaths = SlidingWindow::new(window);
        Self { restarts_max, deaths, lost_deaths: 0, ready_since: None }
    }

    /// A worker takes turns.
    pub(super) fn ready(&mut self, now: Instant) {
        self.ready_since = Some(now);
    }

    /// Forgets earlier deaths: somebody may have removed their cause.
    pub(super) fn forget(&mut self) {
        self.deaths.clear();
        self.lost_deaths = 0;
    }

    pub(super) fn died(&mut self, now: Instant) -> Restart {
        let lived =
            self.ready_since.take().map_or(Duration::ZERO, |since| now.duration_since(since));
        // A worker that lived for a whole window is not part of a series of deaths.
        if lived >= self.deaths.length() {
            self.forget();
        }

        if self.lost_deaths == 0 {
            self.deaths.record(now, self.restarts_max.saturating_add(1));
            let deaths = self.deaths.count(now);
            if deaths <= self.restarts_max {
                let pause = deaths.checked_sub(2).map(|retry| BACKOFF.delay(retry));
                return Restart { pause: pause.unwrap_or(Duration::ZERO), lost_after: None };
            }
        }

        self.lost_deaths = self.lost_deaths.saturating_add(1);
        Restart {
            pause: LOST_BACKOFF.delay(self.lost_deaths - 1),
            lost_after: Some(self.restarts_max.saturating_add(self.lost_deaths)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    /// A moment that the clock of the test names.
    #[expect(clippy::disallowed_methods, reason = "an origin; the tests advance it themselves")]
    fn origin() -> Instant {
        Instant::now()
    }

    fn pauses(
        policy: &mut RestartPolicy,
        at: impl Iterator<Item = Instant>,
    ) -> Vec<(u128, Option<u32>)> {
        at.map(|now| policy.died(now))
            .map(|restart| (restart.pause.as_millis(), restart.lost_after))
            .collect()
    }

    #[test]
    fn pauses_grow_and_an_engine_is_lost_but_never_given_up() {
        let (start, mut policy) = (origin(), RestartPolicy::new(3, WINDOW));
        let found = pauses(&mut policy, (0..12).map(|second| start + Duration::from_secs(second)));
        let lost = [(4, 1), (5, 2), (6, 4), (7, 8), (8, 16), (9, 32), (10, 60), (11, 60), (12, 60)];
        let soon = [(0, None), (50, None), (100, None)];
        let late = lost.map(|(deaths, seconds)| (seconds * 1000, Some(deaths)));
        assert_eq!(found, [&soon[..], &late].concat());
    }

    #[test]
    fn a_worker_that_lived_ends_the_growth_and_a_short_life_does_not() {
        let (start, mut policy) = (origin(), RestartPolicy::new(0, WINDOW));
        assert_eq!(policy.died(start).lost_after, Some(1));
        policy.ready(start + Duration::from_secs(1));
        let soon = policy.died(start + Duration::from_secs(2));
        assert_eq!((soon.pause, soon.lost_after), (Duration::from_secs(2), Some(2)));
        policy.ready(start + Duration::from_secs(5));
        let late = policy.died(start + Duration::from_secs(15));
        assert_eq!((late.pause, late.lost_after), (Duration::from_secs(1), Some(1)));
    }

    #[test]
    fn deaths_outside_the_window_and_forgotten_ones_do_not_count() {
        let (start, mut policy) = (origin(), RestartPolicy::new(1, WINDOW));
        for second in [0, 11, 22] {
            let restart = policy.died(start + Duration::from_secs(second));
            assert_eq!(restart, Restart { pause: Duration::ZERO, lost_after: None });
        }
        assert!(policy.died(start + Duration::from_secs(23)).lost_after.is_some());
        policy.forget();
        assert_eq!(policy.died(start + Duration::from_secs(24)).lost_after, None);
    }
}
