//! The route of the comparison that `agents.split` makes.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::ApiError;
use super::runs::{filter_of, query};
use super::wire::{SplitInfo, SplitQuery, SplitReport};
use super::{State, no_such_method};
use crate::agents::Names;
use crate::settings::Settings;
use prime_protocol::Role;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/split").route(web::get().to(show)).default_service(web::to(|| no_such_method("GET"))),
    );
}

/// What is compared now; `None` where nothing is.
fn info(settings: &Settings) -> Option<SplitInfo> {
    let split = &settings.agents.split;
    let names = Names::of(settings);
    let agent = match split.role {
        Role::Executor => names.executor,
        Role::Verifier => names.verifier,
        Role::Coordinator => names.coordinator,
    };
    let is_on = !split.other.is_empty();
    is_on.then(|| SplitInfo { role: split.role, agent, other: split.other.clone(), share: split.share })
}

fn millis(since: &str) -> Result<u64, ApiError> {
    let time: jiff::Timestamp = since
        .parse()
        .map_err(|error| ApiError::bad_field("since", format!("must be a time, as 2026-02-03T04:05:06Z: {error}")))?;
    // Nothing is older than 1970.
    Ok(u64::try_from(time.as_millisecond()).unwrap_or(0))
}

/// Compares the runs on both sides of `agents.split`.
///
/// Of the runs in the journal that the request's key owns, or of all where there are no keys. The interval of the verified
/// share is Wilson's, at 95 %.
#[utoipa::path(
    get, path = "/v1/split", tag = "operations", operation_id = "compare_runs", params(SplitQuery),
    responses((status = 200, description = "Both sides", body = SplitReport)),
)]
pub async fn show(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let SplitQuery { since } = query(&request)?;
    let since = since.as_deref().map(millis).transpose()?;
    let comparison = state.runs.comparison(filter_of(&request), since).await?;
    let (split, is_complete) = (info(state.runs.app().settings()), comparison.is_complete);
    Ok(HttpResponse::Ok().json(SplitReport { split, arms: comparison.arms, is_complete }))
}
