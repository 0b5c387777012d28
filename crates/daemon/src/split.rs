//! The route that reports the comparison of `agents.split`.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, method_not_allowed};
use super::parameters::{millis, parse_query};
use super::request_context::{owner_of, shown_to};
use super::state::State;
use super::wire::{SplitInfo, SplitQuery, SplitReport};
use prime_agent_set::configured_names;
use prime_protocol::Role;
use prime_settings::Settings;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/split")
            .route(web::get().to(show))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// The configured comparison, if any.
fn info(settings: &Settings) -> Option<SplitInfo> {
    let split = &settings.agents.split;
    let names = configured_names(settings);
    let agent = match split.role {
        Role::Executor => names.executor,
        Role::Verifier => names.verifier,
        Role::Coordinator => names.coordinator,
    };

    let is_on = !split.other.is_empty();
    is_on.then(|| SplitInfo {
        role: split.role,
        agent,
        other: split.other.clone(),
        share: split.share,
    })
}

/// Compares the runs on both sides of `agents.split`.
///
/// Counts the runs in the journal that the request's key owns; without keys, all. The interval of
/// the verified share is Wilson's, at 95 %.
#[utoipa::path(
    get, path = "/v1/split", tag = "operations", operation_id = "compare_runs", params(SplitQuery),
    responses((status = 200, description = "Both sides", body = SplitReport)),
)]
pub async fn show(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let SplitQuery { since } = parse_query(&request)?;
    let since = since.as_deref().map(|since| millis("since", since)).transpose()?;
    let comparison = state.runs.reader().comparison(shown_to(owner_of(&request)), since).await?;

    let (split, is_complete) = (info(state.runs.app().settings()), comparison.is_complete);
    Ok(HttpResponse::Ok().json(SplitReport { split, arms: comparison.arms, is_complete }))
}
