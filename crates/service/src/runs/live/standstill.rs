//! Since when a run that is under way has told nothing new.

use std::sync::atomic::{AtomicU64, Ordering};

/// Not under way, as a time.
const NOT_UNDER_WAY: u64 = 0;

/// When a run moved last. All times are in milliseconds since 1970.
#[derive(Default)]
pub struct Standstill {
    moved_ms: AtomicU64,
    /// The number of the event, plus one, after which a standstill was told; 0 = none was.
    told: AtomicU64,
}

impl Standstill {
    /// The runtime has the run.
    pub fn begin(&self, now_ms: u64) {
        self.moved_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    /// Events are on their way into the journal.
    pub fn moved(&self, now_ms: u64) {
        // What moves without the runtime, such as an end in the queue, begins nothing.
        if self.moved_ms.load(Ordering::Relaxed) != NOT_UNDER_WAY {
            self.moved_ms.store(now_ms.max(1), Ordering::Relaxed);
        }
    }

    /// The runtime is done with the run.
    pub fn end(&self) {
        self.moved_ms.store(NOT_UNDER_WAY, Ordering::Relaxed);
    }

    /// When the run moved last, if that is at least `stuck_ms` ago. 0 = never.
    pub fn since(&self, now_ms: u64, stuck_ms: u64) -> Option<u64> {
        let moved_ms = self.moved_ms.load(Ordering::Relaxed);
        let is_stuck = stuck_ms > 0
            && moved_ms != NOT_UNDER_WAY
            && now_ms.saturating_sub(moved_ms) >= stuck_ms;
        is_stuck.then_some(moved_ms)
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
        let run = Standstill::default();
        run.moved(5_000);
        assert_eq!(run.since(90_000, 1_000), None, "it waits");

        run.begin(10_000);
        assert_eq!((run.since(10_999, 1_000), run.since(11_000, 1_000)), (None, Some(10_000)));
        assert_eq!(run.since(90_000, 0), None, "nobody asks");
        run.moved(90_000);
        assert_eq!(run.since(90_999, 1_000), None);
        // A clock that is set back makes no standstill.
        assert_eq!(run.since(1, 1_000), None);

        run.end();
        assert_eq!(run.since(900_000, 1_000), None, "it is over");
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
