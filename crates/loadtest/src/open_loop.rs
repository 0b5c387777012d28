//! The open loop: steps are due at fixed times, whether or not their trajectory is free.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::histogram::empty;
use super::schedule::Schedule;
use super::session::{Phase, Session};
use super::trajectory::Trajectory;

/// Longest sleep of the generator, which bounds how long it takes to stop.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Steps after which a generator without sleep checks whether it should stop.
const STOP_CHECK_STEPS: u64 = 256;
/// The delay in nanoseconds by which the kernel may coalesce wake-ups of a thread; the default is
/// 50,000.
pub const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;

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
            // A generator that lags never sleeps; checking rarely keeps releases fast.
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
