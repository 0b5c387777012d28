//! Runs a measurement: all trajectories start and wait, then the warm-up, then the measured time,
//! then all runs end.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, TryStreamExt as _};
use prime_allocator::Tally;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::open_loop::Generator;
use super::point::Measured;
use super::record::StageKind;
use super::report::Length;
use super::resource_usage::ResourceUsage;
use super::session::{Phase, Session};
use super::trajectory::{RunEnd, Trajectory};

/// Runs launched concurrently.
const LAUNCHES_MAX: usize = 256;

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Number of trajectories, at least 1.
    pub trajectories: u32,
    /// Length of the measurement, after the warm-up.
    pub length: Length,
    /// Time before the measurement in which steps run but do not count.
    pub warmup: Duration,
    /// Steps due per second over all trajectories; `None` is a closed loop.
    pub rate: Option<f64>,
    /// The stages of a step, if they are timed. The last one gets the rest of a step's latency.
    pub stages: Vec<StageKind>,
}

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    /// A run ended that should have continued.
    #[error(
        "trajectory {trajectory} of the load ended as {outcome}, so the measurement is invalid"
    )]
    Ended {
        /// Number of the trajectory, from 0.
        trajectory: u32,
        /// The run's outcome.
        outcome: String,
    },
    /// The measurement was over before a step was decided.
    #[error("no step was decided during the measurement: give a longer --duration, or --steps")]
    NoSteps,
    /// The runtime ended during the measurement.
    #[error("the runtime ended before the load")]
    Gone,
    /// The thread of the open loop could not be started.
    #[error("the load generator could not be started: {0}")]
    Generator(std::io::Error),
}

/// Executes runs.
pub trait Launch {
    /// Why a run cannot be launched.
    type Error: From<MeasurementError>;

    /// Starts a run of a trajectory, which must report the run's start, steps and end.
    fn launch(&self, trajectory: &Arc<Trajectory>)
    -> impl Future<Output = Result<(), Self::Error>>;

    /// Ends all current runs.
    fn halt(&self);

    /// Waits until every decided step counts.
    fn settle(&self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Durable steps so far, if these count instead of decided ones.
    fn durable(&self) -> Option<u64> {
        None
    }
}

/// The runs of all trajectories. When one ends, the next is launched.
struct Runs<'l, L> {
    launch: &'l L,
    trajectories: Arc<[Arc<Trajectory>]>,
    ends: mpsc::UnboundedReceiver<RunEnd>,
    live: usize,
}

impl<L: Launch> Runs<'_, L> {
    async fn start(&mut self) -> Result<(), L::Error> {
        let launch = self.launch;
        let all = stream::iter(self.trajectories.iter().map(Ok));
        all.try_for_each_concurrent(LAUNCHES_MAX, |trajectory| launch.launch(trajectory)).await?;
        self.live = self.trajectories.len();
        Ok(())
    }

    /// Keeps all trajectories running until `until` completes.
    async fn run_until(&mut self, until: impl Future<Output = ()>) -> Result<(), L::Error> {
        let mut until = std::pin::pin!(until);
        loop {
            let ended = tokio::select! {
                () = &mut until => return Ok(()),
                ended = self.ends.recv() => ended.ok_or(MeasurementError::Gone)?,
            };
            if let Some(outcome) = ended.failure {
                return Err(
                    MeasurementError::Ended { trajectory: ended.trajectory, outcome }.into()
                );
            }
            self.launch.launch(&self.trajectories[ended.trajectory as usize]).await?;
        }
    }

    /// Halts all runs, and waits for their end.
    async fn end(mut self) {
        self.launch.halt();
        while self.live > 0 && self.ends.recv().await.is_some() {
            self.live -= 1;
        }
    }
}

/// What is read at both ends of the measurement.
struct Reading {
    durable: Option<u64>,
    usage: ResourceUsage,
    now: u64,
}

/// Measures a load.
///
/// # Errors
/// If a run cannot be launched or ends with a failure.
pub async fn measure<L: Launch>(
    measurement: &Measurement,
    launch: &L,
) -> Result<Measured, L::Error> {
    let Measurement { trajectories, length, warmup, rate, stages } = measurement;
    let (steps, time) = match length {
        Length::Steps(steps) => (Some(*steps), None),
        Length::Seconds(seconds) => (None, Some(Duration::from_secs_f64(*seconds))),
    };
    let session = Arc::new(Session::new(*trajectories, steps, *rate, stages));
    let (ended, ends) = mpsc::unbounded_channel();
    let trajectory =
        |number| Arc::new(Trajectory::new(Arc::clone(&session), number, ended.clone()));
    let all: Arc<[Arc<Trajectory>]> = (0..*trajectories).map(trajectory).collect();
    let mut runs = Runs { launch, trajectories: Arc::clone(&all), ends, live: 0 };

    // The trajectories exist and wait, but no step has begun: the heap's growth is their memory.
    let tally = Tally::start();
    let empty = ResourceUsage::now(tally);
    runs.start().await?;
    runs.run_until(session.all_idle()).await?;
    let idle_bytes = ResourceUsage::now(tally).since(empty).heap.map(|heap| heap.live());

    let read = || Reading {
        durable: launch.durable(),
        usage: ResourceUsage::now(tally),
        now: session.now(),
    };
    let begin = || {
        let reading = read();
        session.enter(Phase::Measuring);
        reading
    };

    let is_warmed = !warmup.is_zero();
    if is_warmed {
        session.enter(Phase::WarmUp);
    }
    // Without a warm-up, the measurement begins before the first step is released.
    let mut before = if is_warmed { None } else { Some(begin()) };

    let generator = match &session.schedule {
        Some(schedule) => {
            schedule.begin(session.now());
            let generator = Generator::start(Arc::clone(&session), Arc::clone(&all));
            Some(generator.map_err(MeasurementError::Generator)?)
        }
        None => {
            all.iter().for_each(|trajectory| trajectory.gate.open());
            None
        }
    };

    if is_warmed {
        runs.run_until(sleep(*warmup)).await?;
        before = Some(begin());
    }
    let before = before.expect("invariant: it was read, with a warm-up or without");

    match time {
        Some(time) => runs.run_until(sleep(time)).await?,
        None => {
            let counted = async {
                session.all_finished().await;
                launch.settle().await;
            };
            runs.run_until(counted).await?;
        }
    }
    // The phase ends before the clock is read: no step is measured that was decided after the
    // reading.
    session.enter(Phase::Over);
    let after = read();
    let decided: Vec<_> = all.iter().map(|trajectory| trajectory.decided()).collect();
    let late = generator.map(Generator::end);
    runs.end().await;

    let record = session.take_records();
    let durable =
        before.durable.zip(after.durable).map(|(before, after)| after.saturating_sub(before));
    // A number of steps ends with the last decision, not when that was noticed.
    let ends_with_step = steps.is_some() && durable.is_none();
    let stopped = if ends_with_step { record.last.max(before.now) } else { after.now };
    // Never 0, because rates are divided by it.
    let seconds =
        (Duration::from_nanos(stopped.saturating_sub(before.now)).as_secs_f64()).max(1e-9);
    let rate = session
        .schedule
        .as_ref()
        .map(|schedule| schedule.rate(stopped, decided.into_iter(), record.latency.len(), seconds));

    Ok(Measured {
        trajectories: *trajectories,
        stages: stages.clone(),
        record,
        seconds,
        usage: after.usage.since(before.usage),
        idle_bytes,
        rate: rate.zip(late),
        durable,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::task::{JoinHandle, LocalSet, spawn_local};

    use super::super::record::Tokens;
    use super::*;

    /// Runs of `steps` steps of 10 ms each, in virtual time.
    struct Steady {
        steps: u64,
        outcome: Option<&'static str>,
        runs: RefCell<Vec<(Arc<Trajectory>, JoinHandle<()>)>>,
    }

    impl Steady {
        fn new(steps: u64) -> Self {
            Self { steps, outcome: None, runs: RefCell::default() }
        }
    }

    async fn may_begin(trajectory: &Trajectory) {
        while trajectory.must_wait() {
            let (wake, woken) = tokio::sync::oneshot::channel();
            trajectory
                .wait(Box::new(move || wake.send(()).expect("invariant: the receiver waits")));
            if woken.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    impl Launch for Steady {
        type Error = MeasurementError;

        async fn launch(&self, trajectory: &Arc<Trajectory>) -> Result<(), MeasurementError> {
            let (run, steps, outcome) = (Arc::clone(trajectory), self.steps, self.outcome);
            let task = spawn_local(async move {
                run.run_started();
                for _ in 0..steps {
                    may_begin(&run).await;
                    sleep(Duration::from_millis(10)).await;
                    run.step(Tokens { prompt: 3, completion: 1 }, Some(&[4_000_000]));
                }
                run.run_ended(outcome.map(str::to_owned));
            });
            let mut runs = self.runs.borrow_mut();
            runs.retain(|(_, task)| !task.is_finished());
            runs.push((Arc::clone(trajectory), task));
            Ok(())
        }

        fn halt(&self) {
            for (trajectory, task) in self.runs.take() {
                task.abort();
                trajectory.run_ended(None);
            }
        }
    }

    fn closed(length: Length, warmup_ms: u64) -> Measurement {
        let stages = vec![
            StageKind { name: "work", is_work: true },
            StageKind { name: "rest", is_work: false },
        ];
        Measurement {
            trajectories: 4,
            length,
            warmup: Duration::from_millis(warmup_ms),
            rate: None,
            stages,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_is_measured_after_the_warm_up() {
        let load = Steady::new(7);
        let measurement = closed(Length::Seconds(0.5), 205);
        let measured = LocalSet::new().run_until(measure(&measurement, &load)).await.unwrap();

        assert_eq!(measured.tokens(), Tokens { prompt: 600, completion: 200 });
        assert_eq!(measured.coordination_share().map(|share| (share * 10.0).round()), Some(6.0));

        let point = measured.point(None).unwrap();
        // Four trajectories with a step every 10 ms, over runs of seven steps.
        assert_eq!((point.steps, point.failures, point.rate), (200, 0, None));
        assert!((point.seconds - 0.5).abs() < 0.002, "{}", point.seconds);
        assert!((point.latency.p50_us - 10_000.0).abs() < 20.0, "{:?}", point.latency);

        let names: Vec<_> =
            point.stages.iter().map(|stage| (stage.name.as_str(), stage.is_work)).collect();
        assert_eq!(names, [("work", true), ("rest", false)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_of_steps_ends_with_the_last() {
        let load = Steady::new(7);
        let measured =
            LocalSet::new().run_until(measure(&closed(Length::Steps(20), 0), &load)).await.unwrap();

        let point = measured.point(None).unwrap();
        assert_eq!(point.steps, 80);
        assert!((point.seconds - 0.2).abs() < 0.001, "{}", point.seconds);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_and_empty_measurements_are_errors() {
        let failing = Steady { outcome: Some("agent_failed"), ..Steady::new(3) };
        let measurement = closed(Length::Seconds(1.0), 0);
        let error = LocalSet::new()
            .run_until(measure(&measurement, &failing))
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("agent_failed") && error.contains("trajectory"), "{error}");

        let measurement = closed(Length::Seconds(0.005), 0);
        let measured =
            LocalSet::new().run_until(measure(&measurement, &Steady::new(3))).await.unwrap();
        assert!(matches!(measured.point(None), Err(MeasurementError::NoSteps)));
    }
}
