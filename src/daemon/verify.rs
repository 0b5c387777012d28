//! Judges steps and answers without a run, one at a time or in batches.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::ApiError;
use super::guard::{Body, json};
use super::method_not_allowed;
use prime_bench::judge::single::{self, Verification, VerifyError, VerifyRequest};

/// Most requests of a batch.
const BATCH_MAX: usize = 10_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/verify")
            .route(web::post().to(judge))
            .default_service(web::to(|| method_not_allowed("POST"))),
    );
}

/// Requests that are judged independently.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBatch {
    /// Up to 10,000.
    #[schema(max_items = 10_000)]
    pub batch: Vec<VerifyRequest>,
}

/// One request, or `{"batch": [...]}`. Only for the OpenAPI document: the two are parsed separately, so that errors name
/// the field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never constructed")]
enum VerifyBody {
    One(Box<VerifyRequest>),
    Batch(VerifyBatch),
}

/// The result of a request of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BatchEntry {
    Judged(Verification),
    Refused { error: VerifyError },
}

/// The results, in the order of the requests.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    pub results: Vec<BatchEntry>,
}

/// A judgement, or the results of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum VerifyAnswer {
    One(Verification),
    Batch(BatchAnswer),
}

/// Parses a body and judges it.
pub(super) fn judged(body: &[u8]) -> Result<VerifyAnswer, ApiError> {
    let is_batch = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body)
        .is_ok_and(|object| object.contains_key("batch"));
    if !is_batch {
        let request: VerifyRequest = json(body)?;
        return single::judge(&request).map(VerifyAnswer::One).map_err(|error| match error.field {
            Some(field) => ApiError::bad_value(&field, error.message),
            None => ApiError::internal(error.message),
        });
    }
    let VerifyBatch { batch } = json(body)?;
    if batch.len() > BATCH_MAX {
        return Err(ApiError::bad_field("batch", format!("has {} requests; give up to {BATCH_MAX}", batch.len())));
    }
    let entry = |request: &VerifyRequest| match single::judge(request) {
        Ok(verification) => BatchEntry::Judged(verification),
        Err(error) => BatchEntry::Refused { error },
    };
    Ok(VerifyAnswer::Batch(BatchAnswer { results: batch.iter().map(entry).collect() }))
}

/// Judges a step in a given state, or an answer, without a run.
///
/// The state is given in the task's own form, as in a trace, or by the action lines from the start. With `batch`, each
/// request has its own result: an invalid one does not affect the others.
#[utoipa::path(
    post, path = "/v1/verify", tag = "runs", operation_id = "verify",
    request_body(content = VerifyBody, examples(
        ("a step" = (value = json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "action": "move 1 0 2"}))),
        ("an answer" = (value = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "answer": {"sorted": [1, 2, 3], "comparisons": 3, "swaps": 2, "passes": 2}}))),
        ("a batch" = (value = json!({"batch": [{"task": "bubble-sort", "input": {"a": [2, 1]}, "action": "cmp 0 1"}]}))),
    )),
    responses((status = 200, description = "The judgement, or the results of a batch", body = VerifyAnswer)),
)]
pub async fn judge(body: Body) -> Result<HttpResponse, ApiError> {
    // May take long, for which the threads that serve must not wait.
    let answer = web::block(move || judged(&body.0)).await;
    let answer = answer.map_err(|_| ApiError::internal("the request could not be completed"))??;
    Ok(HttpResponse::Ok().json(answer))
}
