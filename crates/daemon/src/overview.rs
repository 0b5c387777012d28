//! The route that says what the runs in the journal add up to.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::Rights;
use super::parameters::{millis, parse_query, wanted_label};
use super::request_context::{ALL_KEYS, asking, listed_owner};
use super::state::State;
use prime_journal::SearchQuery;
use prime_service::runs::Overview;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/overview")
            .route(web::get().to(show))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// Which runs to add up. All conditions hold together.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OverviewQuery {
    /// Only runs accepted at this time or later, as `2026-02-03T04:05:06Z`; all by default.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Only runs accepted before this time; now by default.
    #[param(format = DateTime)]
    pub before: Option<String>,
    /// A task's slug, or `problem`.
    pub task: Option<String>,
    /// One of `models`.
    pub model: Option<String>,
    /// The name of a label, or `NAME:VALUE`.
    pub label: Option<String>,
    /// Only runs of the key with this name; `*` stands for all keys. Only an admin's key may ask
    /// for other keys than its own; its default is all.
    pub key: Option<String>,
}

/// Adds up runs.
///
/// By task, by model, by day, and by the constraint that refused lines, over the runs in the
/// journal that the request's key owns; with an admin's key or without keys, over all. A run counts
/// about a second after it was accepted, its figures as soon after its end.
#[utoipa::path(
    get, path = "/v1/overview", tag = "operations", operation_id = "overview",
    params(OverviewQuery),
    responses(
        (status = 200, description = "The figures", body = Overview),
        (
            status = 403,
            description = "Only an admin's key asks for the runs of others; without keys, another \
                host or origin",
            body = ErrorBody,
        ),
    ),
)]
pub async fn show(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let wanted: OverviewQuery = parse_query(&request)?;
    let time = |name: &str, time: Option<&str>| time.map(|time| millis(name, time)).transpose();
    let since_ms = time("since", wanted.since.as_deref())?;
    let before_ms = time("before", wanted.before.as_deref())?;
    if since_ms.zip(before_ms).is_some_and(|(since, before)| since >= before) {
        return Err(ApiError::bad_field("before", "is not after `since`: give a later time"));
    }

    let asking = asking(&request);
    let all = (asking.rights == Rights::Admin).then_some(ALL_KEYS);
    let owner = listed_owner(&asking, wanted.key.as_deref().or(all))?;
    let key = owner.clone().or_else(|| state.has_keys.then(|| ALL_KEYS.to_owned()));
    let query = SearchQuery {
        owner,
        task: wanted.task,
        model: wanted.model,
        label: wanted.label.map(wanted_label).transpose()?,
        since_ms,
        before_ms,
        ..SearchQuery::default()
    };
    let overview = state.runs.reader().overview(query).await?;
    Ok(HttpResponse::Ok().json(Overview { key, ..overview }))
}
