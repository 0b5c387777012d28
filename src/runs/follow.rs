//! From the runtime to the journal: hands a run to its cells and writes down how it ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::live::{LiveRun, Status};
use super::service::{Place, Runs};
use super::stream::{Recorder, RowUpdate};
use crate::report::{RunResult, TraceLine};
use crate::runtime::{Observer, Submission, Watched};
use crate::telemetry::TracedRun;
use prime_bench::tasks::Problem;
use prime_protocol::{Ending, Outcome, SuspendedRun};

/// Carries a run to its end.
pub(super) async fn follow(
    runs: Arc<Runs>,
    live: Arc<LiveRun>,
    problem: Arc<dyn Problem>,
    suspended: Option<Box<SuspendedRun>>,
    place: Place,
) {
    let outcome = match runs.app().runtime_of(&live.spec.overrides) {
        Ok(runtime) => {
            let started = RowUpdate {
                updated_ms: (runs.clock)(),
                status: Status::Running.name().to_owned(),
                is_over: false,
                resumed: live.resumed.load(Ordering::Relaxed),
                summary: serde_json::to_string(&RunResult::open(&live.solved)).expect("invariant: results serialise"),
            };
            let recorder = Arc::new(Recorder { stream: Arc::clone(&live.stream), started });
            let observer = Arc::new(Watched::new(runs.metrics.run(problem.spec()), recorder));
            let observer = traced(&runs, &live, observer);
            let observer = match runs.observe_with.get() {
                Some(observe) => observe(&live.spec, observer),
                None => observer,
            };
            let mut handle = runtime.submit(Submission {
                problem,
                plan: live.spec.plan.clone(),
                sampling: live.spec.sampling,
                observer,
                suspended,
            });
            live.set_canceller(handle.canceller());
            // Without an outcome the runtime is gone, and this process with it: the next one goes on.
            let Some(outcome) = handle.outcome().await else { return };
            outcome
        }
        Err(error) => failed(error.to_string(), &live),
    };
    conclude(&runs, &live, outcome, place).await;
}

/// With its spans told, where the configuration names a collector.
fn traced(runs: &Runs, live: &LiveRun, observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
    let Some(telemetry) = &runs.telemetry else { return observer };
    let run = TracedRun {
        id: live.stream.id.clone(),
        task: live.spec.task.clone(),
        parent: live.spec.traceparent.as_deref().and_then(|parent| parent.parse().ok()),
        started: jiff::Timestamp::from_millisecond(i64::try_from((runs.clock)()).unwrap_or(0)).unwrap_or_default(),
    };
    telemetry.observer(&run, observer)
}

/// The outcome of a run that could not be carried on.
pub(super) fn failed(reason: String, live: &LiveRun) -> Outcome {
    let ending = Ending::AgentFailed(reason);
    live.stream
        .append(&TraceLine::Stopped { ending: &ending, elapsed_ms: live.stream.committed().progress.elapsed_ms });
    Outcome::without_answer(ending)
}

/// Writes a run's result, and lets go of it when that is durable.
pub(super) async fn conclude(runs: &Arc<Runs>, live: &Arc<LiveRun>, outcome: Outcome, place: Place) {
    let status = Status::of(&outcome);
    let progress = live.stream.waiting_progress();
    let wall_ms = progress.elapsed_ms;
    let mut result = RunResult::new(outcome, &live.solved, wall_ms);
    if result.answer.is_none() {
        // What was committed is kept, and said.
        result.steps = progress.steps;
    }
    tracing::info!(
        run = %live.stream.id,
        status = status.name(),
        outcome = result.outcome.as_deref(),
        steps = result.steps,
        proposals = result.proposals,
        wall_ms,
        "run over"
    );
    // Whoever sees that it is over finds room for the next.
    drop(place);
    let written = live.stream.update(RowUpdate {
        updated_ms: (runs.clock)(),
        status: status.name().to_owned(),
        is_over: true,
        resumed: live.resumed.load(Ordering::Relaxed),
        summary: serde_json::to_string(&result).expect("invariant: results serialise"),
    });
    // Not written means that the process is ending: the next one folds the same events to the same end.
    if written.await.is_ok() {
        runs.live.remove(&live.stream.id);
    }
}
