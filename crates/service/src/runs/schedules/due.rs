//! What a schedule is to do at a moment. Pure. Times are milliseconds since 1970.

use prime_settings::{Cron, Missed};

/// How long after its time a run still starts as if it were on time.
const PUNCTUAL_MS: u64 = 60_000;
/// How far the clocks of a cluster's nodes may be apart without one of them counting as set back.
const SKEW_MS: u64 = 60_000;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing before this time; never if there is none.
    Wait(Option<u64>),
    /// Start the run of this time.
    Start(u64),
    /// Leave out the run of this time, which is long past.
    Skip(u64),
}

/// Up to when a schedule is done if the clock shows `now_ms`. A node whose clock is a little slow
/// waits for what another one has marked. A clock that was set back shows times again that are
/// done; their runs are known by their keys, and those of its last minute, which may have passed
/// unseen, are looked at again.
pub fn done_by(done_ms: u64, now_ms: u64) -> u64 {
    let is_set_back = done_ms.saturating_sub(now_ms) > SKEW_MS;
    if is_set_back { now_ms.saturating_sub(PUNCTUAL_MS) } else { done_ms }
}

fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// What is due at `now_ms` of a schedule that is done up to `done_ms`. Of several times, only the
/// last counts. `refused_ms` is the time whose run was due before, and was not accepted.
pub fn due(cron: &Cron, missed: Missed, done_ms: u64, now_ms: u64, refused_ms: Option<u64>) -> Due {
    let last = cron.last_within(signed(done_ms), signed(now_ms));
    let Some(last) = last.and_then(|last| u64::try_from(last).ok()) else {
        let next = cron.next_after(signed(done_ms.max(now_ms)));
        return Due::Wait(next.and_then(|next| u64::try_from(next).ok()));
    };

    let is_late = now_ms - last > PUNCTUAL_MS && refused_ms != Some(last);
    match missed {
        Missed::Skip if is_late => Due::Skip(last),
        Missed::Skip | Missed::Once => Due::Start(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    /// 2026-01-05T00:00:00Z, a Monday.
    const MONDAY: u64 = 1_767_571_200_000;
    const SIX: u64 = MONDAY + 6 * HOUR;

    fn daily(missed: Missed, done_ms: u64, now_ms: u64) -> Due {
        due(&Cron::new("0 6 * * *", "UTC").unwrap(), missed, done_ms, now_ms, None)
    }

    #[test]
    fn a_run_starts_at_its_time_and_once() {
        for missed in [Missed::Skip, Missed::Once] {
            assert_eq!(daily(missed, MONDAY, SIX - 1), Due::Wait(Some(SIX)));
            assert_eq!(daily(missed, MONDAY, SIX), Due::Start(SIX));
            assert_eq!(daily(missed, MONDAY, SIX + PUNCTUAL_MS), Due::Start(SIX));
            assert_eq!(daily(missed, SIX, SIX), Due::Wait(Some(SIX + 24 * HOUR)));
            assert_eq!(daily(missed, SIX, SIX + 1), Due::Wait(Some(SIX + 24 * HOUR)));
        }
    }

    #[test]
    fn what_was_missed_is_skipped_or_made_up_for_once() {
        let late = SIX + 72 * HOUR + PUNCTUAL_MS + 1;
        assert_eq!(daily(Missed::Skip, SIX, late), Due::Skip(SIX + 72 * HOUR));
        assert_eq!(daily(Missed::Once, SIX, late), Due::Start(SIX + 72 * HOUR));
    }

    #[test]
    fn a_run_that_was_refused_is_tried_until_the_next_time() {
        let cron = Cron::new("0 * * * *", "UTC").unwrap();
        let at = |now_ms| due(&cron, Missed::Skip, SIX - 1, now_ms, Some(SIX));
        assert_eq!(at(SIX + HOUR - 1), Due::Start(SIX));
        assert_eq!(at(SIX + HOUR), Due::Start(SIX + HOUR));
    }

    #[test]
    fn a_node_with_a_slow_clock_starts_no_run_from_before_a_schedule_was_known() {
        // Another node has marked the new schedule half a minute after one of its times.
        let marked = SIX + 30_000;
        for now_ms in [marked - 2_000, marked - SKEW_MS] {
            let due = daily(Missed::Once, done_by(marked, now_ms), now_ms);
            assert_eq!(due, Due::Wait(Some(SIX + 24 * HOUR)), "{now_ms}");
        }
    }

    #[test]
    fn a_clock_that_jumps_starts_no_crowd_of_runs() {
        // Forwards over a year of times: one at most.
        let later = SIX + 365 * 24 * HOUR;
        assert_eq!(daily(Missed::Once, SIX, later), Due::Start(later));
        // Backwards: the times come again.
        let back = |done_ms, now_ms| daily(Missed::Skip, done_by(done_ms, now_ms), now_ms);
        assert_eq!(back(later, SIX - HOUR), Due::Wait(Some(SIX)));
        // One that has passed unseen since then is not lost.
        assert_eq!(back(later, SIX + 1), Due::Start(SIX));
        assert_eq!(back(SIX, SIX), Due::Wait(Some(SIX + 24 * HOUR)));
    }
}
