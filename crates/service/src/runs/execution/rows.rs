//! What a run's row says while the run is open, and at its end.

use std::sync::atomic::Ordering;

use crate::runs::live::live_run::LiveRun;
use crate::runs::record::Status;
use crate::runs::store::event_stream::RowUpdate;
use prime_protocol::Outcome;
use prime_report::RunResult;

/// The row of an open run.
pub fn open_row(live: &LiveRun, status: Status, now_ms: u64) -> RowUpdate {
    let mut result = RunResult::open(&live.context);
    live.stream.uncommitted_progress().fill(&mut result, live.spec.plan.trajectories());
    row(live, status, &result, now_ms)
}

/// The row of a run at its end, its status and its result.
pub fn final_row(live: &LiveRun, outcome: Outcome, now_ms: u64) -> (RowUpdate, Status, RunResult) {
    let status = Status::of(&outcome);
    let progress = live.stream.uncommitted_progress();
    let wall_ms = progress.elapsed_ms;
    let mut result = RunResult::new(outcome, &live.context, wall_ms, progress.steps);
    result.approvals = progress.approvals.if_any();

    tracing::info!(
        run = %live.stream.id,
        status = status.name(),
        outcome = result.outcome.as_deref(),
        steps = result.steps,
        proposals = result.proposals,
        wall_ms,
        "run over"
    );
    (row(live, status, &result, now_ms), status, result)
}

fn row(live: &LiveRun, status: Status, result: &RunResult, now_ms: u64) -> RowUpdate {
    RowUpdate {
        updated_ms: now_ms,
        status: status.name().to_owned(),
        is_over: status.is_over(),
        resumed: live.resumed.load(Ordering::Relaxed),
        summary: serde_json::to_string(result).expect("invariant: results serialise"),
        messages: Vec::new(),
    }
}
