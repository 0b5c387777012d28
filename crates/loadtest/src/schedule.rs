//! Computes when the steps of an open loop are due, and decides whether the rate was held.

use std::sync::atomic::{AtomicU64, Ordering};

use super::report::Rate;

/// Smallest share of a rate that must be reached, give or take a step, for the rate to be held.
const REACHED_MIN: f64 = 0.99;
/// Maximum number of steps that may wait for another step of their trajectory for the rate to be
/// held, as a share of the steps due per second.
const WAITING_MAX: f64 = 0.01;

/// The times at which steps are due. Steps go to the trajectories in turn.
pub struct Schedule {
    rate: f64,
    trajectories: u64,
    /// The time at which the first step is due, in nanoseconds since the session's epoch.
    start: AtomicU64,
}

impl Schedule {
    /// `rate` in steps per second, above 0; at least one trajectory.
    pub fn new(rate: f64, trajectories: u32) -> Self {
        Self { rate, trajectories: trajectories.into(), start: AtomicU64::new(0) }
    }

    /// Sets the time at which the first step is due.
    pub fn begin(&self, start: u64) {
        self.start.store(start, Ordering::Relaxed);
    }

    /// The time at which a step is due, numbered over all trajectories.
    pub(super) fn due_of(&self, step: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        let after = (step as f64 / self.rate * 1e9) as u64;
        self.start.load(Ordering::Relaxed).saturating_add(after)
    }

    /// The time at which a step of a trajectory is due.
    pub fn due(&self, trajectory: u32, step: u64) -> u64 {
        self.due_of(step * self.trajectories + u64::from(trajectory))
    }

    /// Steps of a trajectory among the first `steps` overall.
    fn part(&self, trajectory: u32, steps: u64) -> u64 {
        (steps + self.trajectories - 1 - u64::from(trajectory)) / self.trajectories
    }

    /// Steps due by `now`, inclusive.
    fn due_by(&self, now: u64) -> u64 {
        let after = now.saturating_sub(self.start.load(Ordering::Relaxed));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        let mut steps = (after as f64 * self.rate / 1e9) as u64;

        // The inverse of `due_of` is not exact.
        while self.due_of(steps) <= now {
            steps += 1;
        }
        steps
    }

    /// Returns whether the rate was held. `decided` has the steps of each trajectory by `now`, of
    /// which `measured` were decided during the `seconds` of the measurement.
    pub fn rate(
        &self,
        now: u64,
        decided: impl Iterator<Item = u64>,
        measured: u64,
        seconds: f64,
    ) -> Rate {
        let due = self.due_by(now);
        let (mut behind, mut waiting) = (0, 0);
        for (trajectory, decided) in (0..).zip(decided) {
            let undecided = self.part(trajectory, due).saturating_sub(decided);
            behind += undecided;
            // One of them is in progress and does not wait.
            waiting += undecided.saturating_sub(1);
        }

        let is_reached = measured as f64 + 1.0 >= REACHED_MIN * self.rate * seconds;
        Rate {
            due: self.rate,
            reached: measured as f64 / seconds,
            behind,
            is_held: is_reached && waiting as f64 <= WAITING_MAX * self.rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_to_the_trajectories_in_turn() {
        let schedule = Schedule::new(1_000.0, 4);
        schedule.begin(7_000);

        // One per millisecond, every fourth of the same trajectory.
        for (trajectory, step, millis) in [(0, 0, 0), (1, 0, 1), (3, 0, 3), (0, 1, 4), (2, 10, 42)]
        {
            assert_eq!(schedule.due(trajectory, step), 7_000 + millis * 1_000_000);
        }

        for (nanos, due) in
            [(0, 1), (999_999, 1), (1_000_000, 2), (3_500_000, 4), (1_000_000_000, 1_001)]
        {
            assert_eq!(schedule.due_by(7_000 + nanos), due, "{nanos}");
        }

        let parts = |steps| [0, 1, 2, 3].map(|trajectory| schedule.part(trajectory, steps));
        assert_eq!(
            [parts(0), parts(1), parts(6), parts(8)],
            [[0; 4], [1, 0, 0, 0], [2, 2, 1, 1], [2; 4]]
        );
    }

    #[test]
    fn due_times_and_counts_agree_at_odd_rates() {
        for rate in [0.3, 7.0, 333.3, 99_999.9, 10_000_000.0] {
            let schedule = Schedule::new(rate, 3);
            schedule.begin(123_456_789);
            for step in [0, 1, 2, 999, 1_000_000] {
                let due = schedule.due_of(step);
                assert!(schedule.due_by(due) > step, "{rate} {step}");
                assert!(step == 0 || schedule.due_by(due - 1) <= step, "{rate} {step}");
            }
        }
    }

    #[test]
    fn a_rate_is_held_if_no_steps_queue() {
        // Ten per second over two trajectories for ten seconds: 101 are due, 51 and 50.
        let schedule = Schedule::new(10.0, 2);

        let now = 10_000_000_000;
        for (decided, measured, behind, is_held) in [
            ([51, 50], 100, 0, true),
            // One each is in progress.
            ([50, 49], 99, 2, true),
            ([49, 50], 99, 2, false),
            // Steps of the warm-up were decided late.
            ([51, 50], 97, 0, false),
            ([3, 3], 6, 95, false),
        ] {
            let rate = schedule.rate(now, decided.into_iter(), measured, 10.0);
            assert_eq!((rate.behind, rate.is_held), (behind, is_held), "{decided:?}");
            assert!((rate.reached - measured as f64 / 10.0).abs() < 1e-9 && rate.due == 10.0);
        }

        // A thousand per second: ten may queue.
        let schedule = Schedule::new(1_000.0, 1);
        for (decided, is_held) in [(9_990, true), (9_989, false)] {
            assert_eq!(schedule.rate(now, [decided].into_iter(), 9_950, 10.0).is_held, is_held);
        }
    }
}
