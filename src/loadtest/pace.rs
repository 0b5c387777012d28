//! The open loop: steps are due at fixed times, whether or not the trajectory is free.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::histogram::empty;
use super::report::Rate;
use super::session::{Phase, Session};
use super::watch::Watch;

/// Longest sleep of the generator, so that it ends soon when it is told.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// The kernel may wake a thread later by this, in nanoseconds, to wake several at once; the default is 50,000.
const SLACK: NonZeroU64 = NonZeroU64::MIN;
/// A rate is held if this share of it was reached, within a step.
const REACHED_MIN: f64 = 0.99;
/// And if steps that wait behind another one of their trajectory are at most this share of a second's.
const WAITING_MAX: f64 = 0.01;

/// When each step is due: they are dealt in turn to the trajectories.
pub struct Schedule {
    rate: f64,
    trajectories: u64,
    /// When the first is due, in nanoseconds since the session's epoch.
    start: AtomicU64,
}

impl Schedule {
    /// Steps a second, above 0, over so many trajectories, at least 1.
    pub fn new(rate: f64, trajectories: u32) -> Self {
        Self { rate, trajectories: trajectories.into(), start: AtomicU64::new(0) }
    }

    /// The first step is due at this time.
    pub fn begin(&self, start: u64) {
        self.start.store(start, Ordering::Relaxed);
    }

    /// When the step of this number, over all trajectories, is due.
    fn due_of(&self, step: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturates")]
        let after = (step as f64 / self.rate * 1e9) as u64;
        self.start.load(Ordering::Relaxed).saturating_add(after)
    }

    /// When a trajectory's step of this number is due.
    pub fn due(&self, trajectory: u32, step: u64) -> u64 {
        self.due_of(step * self.trajectories + u64::from(trajectory))
    }

    /// Steps of a trajectory among the first `steps` of all.
    fn part(&self, trajectory: u32, steps: u64) -> u64 {
        (steps + self.trajectories - 1 - u64::from(trajectory)) / self.trajectories
    }

    /// Steps that are due by `now`, those of that moment included.
    fn due_by(&self, now: u64) -> u64 {
        let after = now.saturating_sub(self.start.load(Ordering::Relaxed));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturates")]
        let mut steps = (after as f64 * self.rate / 1e9) as u64;
        // The division back is not exact.
        while self.due_of(steps) <= now {
            steps += 1;
        }
        steps
    }

    /// Whether the rate was held: `decided` are the steps of each trajectory by `now`, of which `measured` fell into the
    /// `seconds` that were measured.
    pub fn rate(&self, now: u64, decided: impl Iterator<Item = u64>, measured: u64, seconds: f64) -> Rate {
        let due = self.due_by(now);
        let (mut behind, mut waiting) = (0, 0);
        for (trajectory, decided) in (0..).zip(decided) {
            let undecided = self.part(trajectory, due).saturating_sub(decided);
            behind += undecided;
            // One is under way.
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

/// The thread that releases steps when they are due. Ends when it is dropped.
pub struct Generator {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Histogram<u64>>>,
}

impl Generator {
    /// Begins to release the steps of these trajectories, by the schedule of their session.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(session: Arc<Session>, watches: Arc<[Arc<Watch>]>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let release = move || generate(&session, &watches, &stopped);
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(release)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it; by how much it was late with each release that was measured, in nanoseconds.
    pub fn end(mut self) -> Histogram<u64> {
        self.stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_else(empty)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.stop();
    }
}

fn generate(session: &Session, watches: &[Arc<Watch>], stop: &AtomicBool) -> Histogram<u64> {
    let mut late = empty();
    let Some(schedule) = &session.schedule else { return late };
    // Where the kernel refuses, releases are a little later, which the histogram tells.
    let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
    for (step, watch) in (0_u64..).zip(watches.iter().cycle()) {
        let due = schedule.due_of(step);
        let mut now = session.now();
        while now < due {
            if stop.load(Ordering::Acquire) {
                return late;
            }
            std::thread::park_timeout(Duration::from_nanos(due - now).min(SLEEP_MAX));
            now = session.now();
        }
        // Checked here too: a generator that is behind never sleeps.
        if step % 256 == 0 && stop.load(Ordering::Acquire) {
            return late;
        }
        watch.gate.release();
        if session.is(Phase::Measuring) {
            late.saturating_record(now - due);
        }
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_dealt_in_turn() {
        let schedule = Schedule::new(1_000.0, 4);
        schedule.begin(7_000);
        // Every millisecond one, the fourth after the first of the same trajectory.
        for (trajectory, step, millis) in [(0, 0, 0), (1, 0, 1), (3, 0, 3), (0, 1, 4), (2, 10, 42)] {
            assert_eq!(schedule.due(trajectory, step), 7_000 + millis * 1_000_000);
        }
        for (nanos, due) in [(0, 1), (999_999, 1), (1_000_000, 2), (3_500_000, 4), (1_000_000_000, 1_001)] {
            assert_eq!(schedule.due_by(7_000 + nanos), due, "{nanos}");
        }
        let parts = |steps| [0, 1, 2, 3].map(|trajectory| schedule.part(trajectory, steps));
        assert_eq!([parts(0), parts(1), parts(6), parts(8)], [[0; 4], [1, 0, 0, 0], [2, 2, 1, 1], [2; 4]]);
    }

    #[test]
    fn a_due_step_is_due_at_odd_rates_too() {
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
    fn a_rate_is_held_when_nothing_waits_behind_something_else() {
        // Ten a second, over two trajectories, for ten seconds: 101 are due, 51 and 50.
        let schedule = Schedule::new(10.0, 2);
        let now = 10_000_000_000;
        for (decided, measured, behind, is_held) in [
            ([51, 50], 100, 0, true),
            // One each is under way.
            ([50, 49], 99, 2, true),
            ([49, 50], 99, 2, false),
            // Those of the warm-up were decided late.
            ([51, 50], 97, 0, false),
            ([3, 3], 6, 95, false),
        ] {
            let rate = schedule.rate(now, decided.into_iter(), measured, 10.0);
            assert_eq!((rate.behind, rate.is_held), (behind, is_held), "{decided:?}");
            assert!((rate.reached - measured as f64 / 10.0).abs() < 1e-9 && rate.due == 10.0);
        }
        // A thousand a second: ten may wait.
        let schedule = Schedule::new(1_000.0, 1);
        for (decided, is_held) in [(9_990, true), (9_989, false)] {
            assert_eq!(schedule.rate(now, [decided].into_iter(), 9_950, 10.0).is_held, is_held);
        }
    }
}
