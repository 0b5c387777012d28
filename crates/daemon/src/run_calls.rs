//! Calls about runs that HTTP routes and MCP tools have in common.

use std::time::Duration;

use super::background::in_background;
use super::error::ApiError;
use super::guard::Owner;
use super::request_context::owned_run;
use super::state::State;
use super::wire::RetryRequest;
use prime_journal::IdempotencyKey;
use prime_service::app::Overrides;
use prime_service::requests::{ChosenBudget, spec_with_agents};
use prime_service::runs::{Accepted, Retry, RunError, RunRecord, RunSpec};

/// How long a cancellation waits for the run's end to be durable.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// Largest seed of a run.
const SEED_MAX: u64 = i64::MAX.cast_unsigned();

/// Ends a run, and waits a while for that to be durable.
pub(super) async fn cancel_run(state: &State, id: &str) -> Result<RunRecord, RunError> {
    state.runs.cancel(id, CANCEL_PATIENCE).await
}

/// The spec of a run with other agents; `None` for its own. An imported run has none of its own
/// here: they were configured elsewhere, and may be anything.
pub(super) async fn other_agents(
    state: &State,
    owner: &str,
    parent: &RunRecord,
    chosen: Overrides,
) -> Result<Option<RunSpec>, ApiError> {
    let is_foreign = parent.imported.is_some();
    if chosen == Overrides::default() && !is_foreign {
        return Ok(None);
    }
    let (app, spec) = (state.runs.app(), state.runs.store().spec(&parent.id).await?);
    let tasks = app.tasks().asked_by(owner);
    let made =
        in_background(move || spec_with_agents(&app, &tasks, spec, &chosen, is_foreign)).await?;
    Ok(Some(made?))
}

/// Tries a run again on behalf of an owner who may see it.
pub(super) async fn retry_run(
    state: &State,
    asking: &Owner,
    id: &str,
    wanted: RetryRequest,
    key: Option<IdempotencyKey>,
) -> Result<Accepted, ApiError> {
    let parent = owned_run(state, asking, id).await?;
    let RetryRequest { seed, exclude, force, agents, budget } = wanted;
    if let Some(seed) = seed.filter(|seed| *seed > SEED_MAX) {
        return Err(ApiError::bad_field("seed", format!("is {seed}; give 0 to {SEED_MAX}")));
    }
    let retry = Retry {
        seed,
        keep_rejected: !exclude.unwrap_or(true),
        force: force.unwrap_or(false),
        spec_with_agents: other_agents(state, &asking.name, &parent, agents).await?,
        budget: ChosenBudget::of(state.runs.app().settings(), budget)?,
    };
    Ok(state.runs.retry(id, retry, &asking.name, key).await?)
}
