//! The open loop: steps are due at fixed times, whether or not their trajectory is free.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::histogram::empty;
use super::report::Rate;
use super::session::{Phase, Session};
use super::trajectory::Trajectory;

/// Longest sleep of the generator, which bounds how long it takes to stop.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Steps after which a generator without sleep checks whether it should stop.
const STOP_CHECK_STEPS: u64 = 256;
/// How much later the kernel may wake a thread to coalesce wake-ups, in nanoseconds; the default is
/// 50,000.
pub const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;
/// Smallest share of a rate that must be reached, give or take a step, for the rate to be held.
const REACHED_MIN: f64 = 0.99;
/// Most steps that may wait for another step of their trajectory for the rate to be held, as a
/// share of the steps due per second.
const WAITING_MAX: f64 = 0.01;

/// When each step is due. Steps go to the trajectories in turn.
pub struct Schedule {
    rate: f64,
    trajectories: u64,
    /// When the first step is due, in nanoseconds since the session's epoch.
    start: AtomicU64,
}

impl Schedule {
    /// `rate` in steps per second, above 0; at least one trajectory.
    pub fn new(rate: f64, trajectories: u32) -> Self {
        Self { rate, trajectories: trajectories.into(), start: AtomicU64::new(0) }
    }

    /// Sets when the first step is due.
    pub fn begin(&self, start: u64) {
        self.start.store(start, Ordering::Relaxed);
    }

    /// When a step is due, numbered over all trajectories.
    fn due_of(&self, step: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        let after = (step as f64 / self.rate * 1e9) as u64;
        self.start.load(Ordering::Relaxed).saturating_add(after)
    }

    /// When a step of a trajectory is due.
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

    /// Whether the rate was held. `decided` has the steps of each trajectory by `now`, of which
    /// `measured` were decided during the `seconds` of the measurement.
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

/// The thread that releases steps when they are due. Ends when this is dropped.
pub struct Generator {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Histogram<u64>>>,
}

impl Generator {
    /// Releases the steps of these trajectories by the schedule of their session.
    pub fn start(
        session: Arc<Session>,
        trajectories: Arc<[Arc<Trajectory>]>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let generate = move || generate(&session, &trajectories, &stopped);
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(generate)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops the generator. Returns how late each measured release was, in nanoseconds.
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

/// The steps of a schedule in order, without a clock of its own.
struct Releases<'a> {
    schedule: &'a Schedule,
    trajectories: &'a [Arc<Trajectory>],
    /// The next step, over all trajectories.
    step: u64,
    late: Histogram<u64>,
}

impl<'a> Releases<'a> {
    fn new(schedule: &'a Schedule, trajectories: &'a [Arc<Trajectory>]) -> Self {
        Self { schedule, trajectories, step: 0, late: empty() }
    }

    /// Releases the next step if it is due by `now`; otherwise returns when it is due.
    fn release(&mut self, now: u64, is_measured: bool) -> Result<(), u64> {
        let due = self.schedule.due_of(self.step);
        if now < due {
            return Err(due);
        }

        let number = usize::try_from(self.step % self.trajectories.len() as u64);
        self.trajectories[number.expect("invariant: below the count of trajectories")]
            .gate
            .release();
        self.step += 1;

        if is_measured {
            self.late.saturating_record(now - due);
        }
        Ok(())
    }
}

fn generate(
    session: &Session,
    trajectories: &[Arc<Trajectory>],
    stop: &AtomicBool,
) -> Histogram<u64> {
    let Some(schedule) = &session.schedule else { return empty() };

    // If the kernel refuses, releases are a little later, which the histogram shows.
    let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK));
    let mut releases = Releases::new(schedule, trajectories);

    loop {
        let now = session.now();
        match releases.release(now, session.is(Phase::Measuring)) {
            // A generator that lags never sleeps; looking only now and then keeps releases fast.
            Ok(()) if !releases.step.is_multiple_of(STOP_CHECK_STEPS) => {}
            _ if stop.load(Ordering::Acquire) => return releases.late,
            Ok(()) => {}
            Err(due) => std::thread::park_timeout(Duration::from_nanos(due - now).min(SLEEP_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::latency;
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
            // Those of the warm-up were decided late.
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

    #[test]
    fn steps_are_released_when_they_are_due() {
        let session = Arc::new(Session::new(2, None, Some(1_000.0), &[]));
        let (ended, _ends) = tokio::sync::mpsc::unbounded_channel();
        let trajectories = [0, 1]
            .map(|number| Arc::new(Trajectory::new(Arc::clone(&session), number, ended.clone())));

        let schedule = session.schedule.as_ref().unwrap();
        schedule.begin(5_000_000);

        let mut releases = Releases::new(schedule, &trajectories);
        let mut release_all = |now, is_measured| {
            loop {
                if let Err(due) = releases.release(now, is_measured) {
                    return (due, releases.step, releases.late.len());
                }
            }
        };

        let passed = |steps: [u64; 2]| {
            trajectories.iter().zip(steps).all(|(it, steps)| {
                it.gate.is_shut(steps) && !it.gate.is_shut(steps.saturating_sub(1))
            })
        };

        assert_eq!(release_all(4_999_999, false), (5_000_000, 0, 0));
        assert_eq!(release_all(5_000_000, false), (6_000_000, 1, 0));
        // A late generator makes up for what it missed.
        assert_eq!(release_all(8_250_000, true), (9_000_000, 4, 3));
        assert!(passed([2, 2]));
        assert_eq!(release_all(9_000_000, true), (10_000_000, 5, 4));
        assert!(passed([3, 2]));

        let late = latency(&releases.late);
        // 2.25, 1.25, 0.25 and 0 ms.
        assert!(
            (late.max_us - 2_250.0).abs() < 3.0 && (late.mean_us - 937.5).abs() < 3.0,
            "{late:?}"
        );
    }
}
