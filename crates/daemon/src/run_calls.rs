//! Calls about runs that HTTP routes and MCP tools have in common.

use std::time::Duration;

use super::error::ApiError;
use super::parameters::page_limit;
use super::state::State;
use super::wire::{ListQuery, RunList};
use prime_journal::Query;
use prime_service::runs::{RunError, RunPage, RunRecord, Status};

/// How long a cancellation waits for the run's end to be durable.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A page of the runs of an owner, or of all.
pub(super) async fn list_runs(
    state: &State,
    owner: Option<String>,
    wanted: ListQuery,
) -> Result<RunList, ApiError> {
    let limit = page_limit(wanted.limit)?;
    let query = Query {
        owner,
        status: wanted.status.map(Status::name).map(str::to_owned),
        task: wanted.task,
        needs_review: wanted.needs_review.unwrap_or(false),
        after: wanted.after,
        limit,
        ..Query::default()
    };
    let RunPage { runs, unreadable, next } = state.runs.reader().list(query).await?;
    Ok(RunList { runs, unreadable, next })
}

/// Ends a run, and waits a while for that to be durable.
pub(super) async fn cancel_run(state: &State, id: &str) -> Result<RunRecord, RunError> {
    state.runs.cancel(id, CANCEL_PATIENCE).await
}
