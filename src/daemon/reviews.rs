//! Routes of steps that ask for a person.

use actix_web::{HttpRequest, HttpResponse, web};

use super::error::{ApiError, ErrorBody};
use super::guard::{Body, json};
use super::runs::{owner_of, page_limit, query, visible};
use super::wire::{ReviewList, ReviewRequest, ReviewsQuery};
use super::{State, no_such_method};
use crate::runs::FlaggedStep;

/// Longest note, in bytes.
const NOTE_BYTES_MAX: usize = 4_000;
/// Who reviews where there are no keys.
const LOCAL: &str = "local";

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/runs/{id}/reviews")
            .route(web::get().to(list))
            .route(web::post().to(review))
            .default_service(web::to(|| no_such_method("GET, POST"))),
    );
}

/// Lists the steps of a run that ask for a person.
///
/// Steps on which the verifiers of an ensemble disagree by more than its `delta`, with what persons said of them.
#[utoipa::path(
    get, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "list_reviews",
    params(("id", description = "The run's `id`"), ReviewsQuery),
    responses((status = 200, description = "A page of them", body = ReviewList)),
)]
pub async fn list(
    state: web::Data<State>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let ReviewsQuery { after, limit } = query(&request)?;
    let limit = page_limit(limit)?;
    visible(&state, &request, &id).await?;
    let (steps, next) = state.runs.reviews(&id, after.unwrap_or(0), limit).await?;
    Ok(HttpResponse::Ok().json(ReviewList { steps, next }))
}

/// Keeps what a person says of a step.
///
/// Also when the run is over, which stays as it is: `verified` is the verifier's word. The newest review counts, and the
/// earlier ones are kept; what repeats the newest changes nothing.
#[utoipa::path(
    post, path = "/v1/runs/{id}/reviews", tag = "runs", operation_id = "review_step",
    params(("id", description = "The run's `id`")),
    request_body(content = ReviewRequest, example = json!({"seq": 17, "verdict": "reject", "note": "7 is no prime"})),
    responses(
        (status = 200, description = "The step; the review is durable", body = FlaggedStep),
        (status = 409, description = "It has too many reviews", body = ErrorBody),
        (status = 422, description = "The event is no step that asks for a person", body = ErrorBody),
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
    visible(&state, &request, &id).await?;
    let by = Some(owner_of(&request)).filter(|owner| !owner.is_empty()).unwrap_or_else(|| LOCAL.to_owned());
    let step = state.runs.review(&id, seq, verdict, note, by).await?;
    Ok(HttpResponse::Ok().json(step))
}
