//! The load test of the ring: null agents, closed loop, every trajectory a run of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use crate::agents::registry::{AgentSet, Names};
use crate::bench::{NullExecutor, endless};
use crate::protocol::{RunPlan, Score, Thresholds};
use crate::runtime::{Event, Observer, RunHandle, RunSampling, Runtime, RuntimePlan, Submission};
use crate::tasks::{Kind, Kinds};

/// A load on the ring.
#[derive(Clone, Copy, Debug)]
pub struct RingLoad {
    /// Trajectories that go round at the same time.
    pub trajectories: u32,
    /// Steps of each.
    pub steps: u64,
}

/// Percentiles of the time from one decision of a trajectory to its next, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepMicros {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// What a load test measured.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    pub mode: &'static str,
    pub trajectories: u32,
    /// Steps of each trajectory.
    pub steps: u64,
    pub steps_total: u64,
    pub cells: usize,
    pub placement: String,
    pub seconds: f64,
    pub steps_per_second: f64,
    pub step_us: StepMicros,
}

/// Histograms are shared between a few trajectories: one each would be large, one for all would be contended.
const SHARDS: usize = 16;

fn histogram() -> Histogram<u64> {
    // 1 ns to 100 s at three digits.
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("invariant: the bounds are valid")
}

struct Stopwatch {
    shard: Arc<Mutex<Histogram<u64>>>,
    last: Mutex<Instant>,
}

impl Observer for Stopwatch {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Step { .. } = event {
            let now = Instant::now();
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let nanos = u64::try_from(now.duration_since(*last).as_nanos()).unwrap_or(u64::MAX);
            *last = now;
            self.shard.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(nanos.max(1));
        }
    }
}

fn null_agents() -> AgentSet {
    let name = |name: &str| name.to_owned();
    let names = Names { executor: name("null"), verifier: name("rules"), coordinator: name("threshold") };
    let kinds: Kinds = [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect();
    let thresholds = Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };
    AgentSet::of(
        names,
        kinds,
        || Arc::new(NullExecutor),
        move || Arc::new(crate::agents::RulesVerifier::new(kinds)),
        move || Arc::new(crate::agents::ThresholdCoordinator(thresholds)),
    )
}

fn plan(load: RingLoad) -> RunPlan {
    RunPlan::single(load.steps.saturating_add(1))
}

/// Runs the load and reports. Must be called within an actix system.
///
/// # Errors
/// The outcome of a run that did not finish, which would make the figures worthless.
pub async fn ring(load: RingLoad, runtime: &RuntimePlan) -> Result<LoadReport, String> {
    let runtime_plan = RuntimePlan { in_flight_max: u32::MAX, ..runtime.clone() };
    let runtime = Runtime::start(&runtime_plan, null_agents());
    let shards: Vec<_> = (0..SHARDS).map(|_| Arc::new(Mutex::new(histogram()))).collect();
    let problem = endless(load.steps);
    let started = Instant::now();
    let mut handles: Vec<RunHandle> = (0..load.trajectories as usize)
        .map(|index| {
            let stopwatch = Stopwatch { shard: Arc::clone(&shards[index % SHARDS]), last: Mutex::new(Instant::now()) };
            runtime.submit(Submission {
                problem: Arc::clone(&problem),
                plan: plan(load),
                sampling: RunSampling { temperature: 0.0, top_p: 1.0, seed: index as u64 },
                observer: Arc::new(stopwatch),
                resting: None,
            })
        })
        .collect();
    let outcomes = join_all(handles.iter_mut().map(RunHandle::outcome)).await;
    let elapsed: Duration = started.elapsed();
    for outcome in outcomes {
        let outcome = outcome.ok_or("the runtime ended before the load")?;
        if !outcome.verified {
            return Err(format!("a trajectory of the load ended as {}", outcome.ending.name()));
        }
    }
    let mut all = histogram();
    for shard in &shards {
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(&*shard).map_err(|error| format!("histograms cannot be added: {error}"))?;
    }
    let steps_total = load.steps * u64::from(load.trajectories);
    #[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds for display")]
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let at = |quantile| micros(all.value_at_quantile(quantile));
    #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
    let steps_per_second = steps_total as f64 / elapsed.as_secs_f64();
    Ok(LoadReport {
        mode: "ring",
        trajectories: load.trajectories,
        steps: load.steps,
        steps_total,
        cells: runtime_plan.cells,
        placement: format!("{:?}", runtime_plan.placement).to_lowercase(),
        seconds: elapsed.as_secs_f64(),
        steps_per_second,
        step_us: StepMicros { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: micros(all.max()) },
    })
}
