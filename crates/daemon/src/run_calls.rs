//! Calls about runs that HTTP routes and MCP tools have in common.

use std::time::Duration;

use super::state::State;
use prime_service::runs::{RunError, RunRecord};

/// How long a cancellation waits for the run's end to be durable.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// Ends a run, and waits a while for that to be durable.
pub(super) async fn cancel_run(state: &State, id: &str) -> Result<RunRecord, RunError> {
    state.runs.cancel(id, CANCEL_PATIENCE).await
}
