//! Submits a run to the runtime, and records how it ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::Span;

use super::accepted_agents::agents_of;
use super::admission::RunSlot;
use super::event_stream::RowUpdate;
use super::live_run::LiveRun;
use super::record::Status;
use super::recorder::Recorder;
use super::service::Runs;
use crate::telemetry::TracedRun;
use prime_bench::tasks::Problem;
use prime_protocol::{Effect, Ending, Outcome, SuspendedRun};
use prime_report::{RunResult, TraceLine};
use prime_runtime::{Event, Observer, Submission, Watched};

/// How a run starts in this process.
pub(super) struct Start {
    pub problem: Arc<dyn Problem>,
    /// Where it continues.
    pub suspended: Option<Box<SuspendedRun>>,
    /// An earlier process executed it.
    pub is_resumed: bool,
}

impl Start {
    /// A new run.
    pub fn new(problem: Arc<dyn Problem>) -> Self {
        Self { problem, suspended: None, is_resumed: false }
    }
}

/// Runs to the end. `request` is the span of the request that started the run, if any: the parent
/// of the run's span.
pub(super) async fn execute(
    runs: Arc<Runs>,
    live: Arc<LiveRun>,
    start: Start,
    slot: RunSlot,
    request: Span,
) {
    let Start { problem, suspended, is_resumed } = start;
    let recorder = Arc::new(Recorder {
        stream: Arc::clone(&live.stream),
        started: runs.open_row(&live, Status::Running),
    });
    let observer = Arc::new(Watched::new(runs.metrics.run(problem.spec()), recorder));
    let observer = traced(&runs, &live, observer);
    let observer = match runs.wrap_observer.get() {
        Some(wrap) => wrap(&live.spec, observer),
        None => observer,
    };
    let Some((app, agents)) = agents_of(&runs, &live).await else {
        let outcome = cancelled_outcome(suspended, &live, observer.as_ref());
        return conclude(&runs, &live, outcome, slot).await;
    };
    if is_resumed {
        runs.record_resumption(&live);
    }
    let runtime = Arc::clone(app.runtime());
    // What is under way keeps its agents, not the configuration that they are from.
    drop(app);
    let submission = Submission {
        problem,
        plan: live.spec.plan.clone(),
        sampling: live.spec.sampling,
        observer,
        suspended,
    };
    let mut handle = request.in_scope(|| runtime.submit_with(agents.clone(), submission));
    // The request ends long before its run.
    drop(request);
    live.set_canceller(handle.canceller());
    let outcome = tokio::select! {
        outcome = handle.outcome() => outcome,
        () = live.stream.refused() => {
            // What it computes from now on would not be recorded.
            live.cancel();
            handle.outcome().await
        }
    };
    // No outcome means that the process is ending: the next one resumes the run.
    let Some(outcome) = outcome else { return };
    conclude(&runs, &live, outcome, slot).await;
    if let Some(unused) = Arc::into_inner(agents) {
        // Its agents may wait for their processes to end.
        drop(tokio::task::spawn_blocking(move || drop(unused)));
    }
}

/// Adds the export of spans, where the configuration names a collector.
fn traced(runs: &Runs, live: &LiveRun, observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
    let Some(telemetry) = &runs.telemetry else { return observer };
    let run = TracedRun {
        id: live.stream.id.clone(),
        task: live.spec.task.clone(),
        parent: live.spec.traceparent.as_deref().and_then(|parent| parent.parse().ok()),
        started: jiff::Timestamp::from_millisecond(i64::try_from((runs.clock)()).unwrap_or(0))
            .unwrap_or_default(),
    };
    telemetry.observer(&run, observer)
}

/// Ends a run that cannot go on.
pub(super) fn failed_outcome(reason: String, live: &LiveRun) -> Outcome {
    let ending = Ending::AgentFailed(reason);
    live.stream.append(&TraceLine::Stopped {
        ending: &ending,
        elapsed_ms: live.stream.committed().progress.elapsed_ms,
    });
    Outcome::without_answer(ending)
}

/// Ends a run that waits for its agents, with what is committed.
fn cancelled_outcome(
    suspended: Option<Box<SuspendedRun>>,
    live: &LiveRun,
    observer: &dyn Observer,
) -> Outcome {
    let ending = Ending::Cancelled;
    let elapsed_ms = live.stream.uncommitted_progress().elapsed_ms;
    observer.observe(&Event::Stopped { ending: &ending, elapsed_ms });
    let mut effects = Vec::new();
    if let Some(suspended) = suspended {
        let mut run = suspended.run;
        run.stop(ending.clone(), &mut effects);
    }
    let mut outcome = Outcome::without_answer(ending);
    for effect in effects {
        match effect {
            Effect::Voted { round, winner, agreement } => {
                observer.observe(&Event::Voted { round, winner: winner.as_ref(), agreement });
            }
            Effect::Finish(finished) => outcome = *finished,
            _ => {}
        }
    }
    observer.observe(&Event::Finished(&outcome));
    outcome
}

/// Records a run's result, and forgets the run when that is durable. A run whose events the journal
/// refused fails, with the reason.
pub(super) async fn conclude(
    runs: &Arc<Runs>,
    live: &Arc<LiveRun>,
    outcome: Outcome,
    slot: RunSlot,
) {
    if live.stream.is_abandoned() {
        return runs.forget(live);
    }
    let refused = |reason: &str| format!("the journal refused the run's events: {reason}");
    let outcome = match live.stream.reopen() {
        Some(reason) => failed_outcome(refused(&reason), live),
        None => outcome,
    };
    let update = end_of(runs, live, outcome);
    // A client that sees the end must find room for its next run.
    drop(slot);
    let mut written = live.stream.update(update).await;
    if written.is_err()
        && let Some(reason) = live.stream.reopen()
    {
        // Without an event: that may be what the journal refuses.
        let update =
            end_of(runs, live, Outcome::without_answer(Ending::AgentFailed(refused(&reason))));
        written = live.stream.update(update).await;
        if written.is_err() && live.stream.reopen().is_some() {
            tracing::error!(run = %live.stream.id, "the run's end cannot be recorded: the next process goes on with it");
            runs.forget(live);
        }
    }
    // Unwritten means that the process is ending, or that another node has the run: whoever goes on
    // replays the same events to the same end.
    if written.is_ok() || live.stream.is_abandoned() {
        runs.forget(live);
    }
}

/// The run's row at its end.
fn end_of(runs: &Runs, live: &LiveRun, outcome: Outcome) -> RowUpdate {
    let status = Status::of(&outcome);
    let progress = live.stream.uncommitted_progress();
    let wall_ms = progress.elapsed_ms;
    let result = RunResult::new(outcome, &live.context, wall_ms, progress.steps);
    tracing::info!(
        run = %live.stream.id,
        status = status.name(),
        outcome = result.outcome.as_deref(),
        steps = result.steps,
        proposals = result.proposals,
        wall_ms,
        "run over"
    );
    RowUpdate {
        updated_ms: (runs.clock)(),
        status: status.name().to_owned(),
        is_over: true,
        resumed: live.resumed.load(Ordering::Relaxed),
        summary: serde_json::to_string(&result).expect("invariant: results serialise"),
    }
}
