//! Routes of human review.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, ErrorBody, method_not_allowed};
use super::guard::{Body, json};
use super::parameters::{page_limit, parse_query};
use super::request_context::{authorized_run, owner_of};
use super::state::State;
use super::wire::{ReviewList, ReviewRequest, ReviewsQuery};
use prime_service::runs::FlaggedStep;

/// Longest note, in bytes.
const NOTE_BYTES_MAX: usize = 4_000;
/// The reviewer without keys.
const LOCAL: &str = "local";

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/reviews")
            .route(web::get().to(list))
            .route(web::post().to(review))
            .default_service(web::to(|| method_not_allowed("GET, POST"))),
    );
}

/// Lists the steps of a run that need review.
///
/// These are the steps on which the verifiers of an ensemble disagree by more than its `delta`,
/// with their reviews.
#[utoipa::path(
    get, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "list_reviews",
    params(("id", description = "The run's `id`"), ReviewsQuery),
    responses((status = 200, description = "A page of steps", body = ReviewList)),
)]
pub async fn list(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ReviewsQuery { after, limit } = parse_query(&request)?;
    let limit = page_limit(limit)?;
    authorized_run(&state, &request, &id).await?;
    let (steps, next) = state.runs.store().reviews(&id, after.unwrap_or(0), limit).await?;
    Ok(HttpResponse::Ok().json(ReviewList { steps, next }))
}

/// Reviews a step.
///
/// A review does not change its run, which may be over: `verified` is the verifier's verdict. The
/// newest review counts, and earlier ones are kept; a repetition of the newest changes nothing.
#[utoipa::path(
    post, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "review_step",
    params(("id", description = "The run's `id`")),
    request_body(content = ReviewRequest, example = json!({"seq": 17, "verdict": "reject", "note": "7 is not a prime"})),
    responses(
        (status = 200, description = "The step; the review is durable", body = FlaggedStep),
        (status = 409, description = "The step has too many reviews", body = ErrorBody),
        (status = 422, description = "The event is not a step that needs review", body = ErrorBody),
    ),
)]
pub async fn review(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let ReviewRequest { seq, verdict, note } = json(&body.0)?;
    if note.len() > NOTE_BYTES_MAX {
        let message = format!("has {} bytes; give at most {NOTE_BYTES_MAX}", note.len());
        return Err(ApiError::bad_field("note", message));
    }

    authorized_run(&state, &request, &id).await?;
    let by = Some(owner_of(&request))
        .filter(|owner| !owner.is_empty())
        .unwrap_or_else(|| LOCAL.to_owned());

    let step = state.runs.store().review(&id, seq, verdict, note, by).await?;
    Ok(HttpResponse::Ok().json(step))
}
