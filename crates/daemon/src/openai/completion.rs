//! The response to a chat completion without `stream`.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use futures::TryStreamExt as _;
use futures::future::try_join_all;

use super::accept::AcceptedRun;
use super::reasoning;
use super::response::{ChatCompletion, Choice, Head, RunInfo};
use crate::error::ApiError;
use prime_protocol::Usage;
use prime_service::runs::{RunRecord, Runs, Status};

/// A number after the last event of any run.
const LAST: u64 = u32::MAX as u64;
/// When to retry after a failure.
const LATER: Duration = Duration::from_secs(5);

/// The record of a run whose events have ended.
///
/// # Errors
/// 503 when the run failed, or the daemon drains before it is over.
pub async fn record_of(runs: &Arc<Runs>, id: &str) -> Result<RunRecord, ApiError> {
    let (_, record) = runs.reader().get(id).await?;
    if record.status == Status::Failed {
        let reason = record.result.failure.as_deref().unwrap_or("unknown reason");
        return Err(ApiError::unavailable(
            "agent_failed",
            format!("run {id} failed: {reason}"),
            LATER,
        ));
    }
    // The events ended because the daemon drains, not the run.
    if !record.status.is_over() {
        let message =
            format!("the daemon is stopping, and run {id} is not over: ask again in a moment");
        return Err(ApiError::unavailable("draining", message, LATER));
    }
    Ok(record)
}

/// Waits for a run's end; returns its record, and the steps that led to its answer.
///
/// # Errors
/// Like [`record_of`].
pub async fn ended(runs: &Arc<Runs>, id: &str) -> Result<(RunRecord, Option<String>), ApiError> {
    // Only their end is awaited, so none is read.
    // The events of a run that is over end at once.
    let mut events = Box::pin(runs.reader().events(id, LAST, true));
    while events.try_next().await?.is_some() {}

    let record = record_of(runs, id).await?;
    let reasoning = reasoning::of_answer(runs, &record).await?;
    Ok((record, reasoning))
}

async fn choice_of(
    runs: &Arc<Runs>,
    index: u32,
    accepted: &AcceptedRun,
) -> Result<(Choice, Usage), ApiError> {
    let (record, reasoning) = ended(runs, accepted.run.id()).await?;
    Ok((
        Choice::new(index, &record, reasoning, accepted.expected.delivery(&record)),
        record.result.tokens,
    ))
}

/// Waits for all runs, and responds.
///
/// # Errors
/// The error of the first run without a choice.
pub async fn respond(
    runs: &Arc<Runs>,
    head: Head,
    accepted: &[AcceptedRun],
) -> Result<HttpResponse, ApiError> {
    let waiting = (0..).zip(accepted).map(|(index, accepted)| choice_of(runs, index, accepted));

    let mut usage = Usage::default();
    let mut choices = Vec::with_capacity(accepted.len());
    for (choice, tokens) in try_join_all(waiting).await? {
        usage.add(tokens);
        choices.push(choice);
    }

    let prime: RunInfo = choices
        .first()
        .map(|choice: &Choice| choice.prime.clone())
        .ok_or_else(|| ApiError::internal("a chat completion has no choice"))?;

    let Head { id, created, model, system_fingerprint } = head;
    Ok(HttpResponse::Ok().json(ChatCompletion {
        id,
        object: "chat.completion",
        created,
        model,
        system_fingerprint,
        choices,
        usage: usage.into(),
        prime,
    }))
}
