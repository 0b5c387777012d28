//! Since when a run that is under way has told nothing new.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// One moment by both clocks: the wall clock may be set, and the monotonic one has no date.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What durations are measured from.
    pub instant: Instant,
    /// What is shown, in milliseconds since 1970.
    pub wall_ms: u64,
}

impl Moment {
    /// The present moment, at this time of the wall clock.
    pub fn now(wall_ms: u64) -> Self {
        Self { instant: Instant::now(), wall_ms }
    }
}

/// When a run moved last.
#[derive(Default)]
pub struct Standstill {
    /// `None` = it is not under way.
    moved: Mutex<Option<Moment>>,
    /// The number of the event, plus one, after which a standstill was told; 0 = none was.
    told: AtomicU64,
}

impl Standstill {
    fn last(&self) -> MutexGuard<'_, Option<Moment>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime has the run.
    pub fn begin(&self, now: Moment) {
        *self.last() = Some(now);
    }

    /// Events are on their way into the journal.
    pub fn moved(&self, now: Moment) {
        // What moves without the runtime, such as an end in the queue, begins nothing.
        if let Some(moved) = &mut *self.last() {
            *moved = now;
        }
    }

    /// The runtime is done with the run.
    pub fn end(&self) {
        *self.last() = None;
    }

    /// When the run moved last by the wall clock, in milliseconds since 1970, if that is at least
    /// `stuck_ms` ago by the monotonic one. 0 = never.
    pub fn since(&self, now: Instant, stuck_ms: u64) -> Option<u64> {
        let moved = (*self.last())?;
        let stands_for = now.saturating_duration_since(moved.instant);
        (stuck_ms > 0 && stands_for >= Duration::from_millis(stuck_ms)).then_some(moved.wall_ms)
    }

    /// Returns true once for the standstill after each event.
    pub fn tell(&self, last_event: u64) -> bool {
        let told = last_event.saturating_add(1);
        self.told.swap(told, Ordering::Relaxed) != told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_is_under_way_stands_still() {
        let (run, start) = (Standstill::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let moment = |ms| Moment { instant: at(ms), wall_ms: 1_000_000 + ms };
        run.moved(moment(5_000));
        assert_eq!(run.since(at(90_000), 1_000), None, "it waits");

        run.begin(moment(10_000));
        assert_eq!(
            (run.since(at(10_999), 1_000), run.since(at(11_000), 1_000)),
            (None, Some(1_010_000))
        );
        assert_eq!(run.since(at(90_000), 0), None, "nobody asks");
        run.moved(moment(90_000));
        assert_eq!(run.since(at(90_999), 1_000), None);

        run.end();
        assert_eq!(run.since(at(900_000), 1_000), None, "it is over");
    }

    #[test]
    fn a_wall_clock_that_is_set_neither_makes_nor_hides_a_standstill() {
        let (run, start) = (Standstill::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let hour_ms = 3_600_000;

        // Set forward by an hour, then back by two: only the time that is shown follows.
        run.begin(Moment { instant: start, wall_ms: 5 * hour_ms });
        run.moved(Moment { instant: at(10), wall_ms: 6 * hour_ms });
        assert_eq!(run.since(at(1_009), 1_000), None);
        assert_eq!(run.since(at(1_010), 1_000), Some(6 * hour_ms));
        run.moved(Moment { instant: at(2_000), wall_ms: 4 * hour_ms });
        assert_eq!(run.since(at(2_999), 1_000), None);
        assert_eq!(run.since(at(3_000), 1_000), Some(4 * hour_ms));
    }

    #[test]
    fn a_standstill_is_told_once() {
        let run = Standstill::default();
        assert_eq!(
            [run.tell(0), run.tell(0), run.tell(3), run.tell(3)],
            [true, false, true, false]
        );
    }
}
