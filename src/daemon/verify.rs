//! Judging without a run: one step or one answer, or a batch of them.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::ApiError;
use super::guard::{Body, json};
use super::no_such_method;
use prime_bench::judge::single::{self, Verification, VerifyError, VerifyRequest};

/// Requests of a batch.
const BATCH_MAX: usize = 10_000;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/verify").route(web::post().to(judge)).default_service(web::to(|| no_such_method("POST"))),
    );
}

/// Requests that are judged one by one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBatch {
    /// Up to 10,000.
    #[schema(max_items = 10_000)]
    pub batch: Vec<VerifyRequest>,
}

/// One request, or `{"batch": [...]}`. The document's own type: the two are read apart, so that errors name the field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never made")]
enum VerifyBody {
    One(Box<VerifyRequest>),
    Batch(VerifyBatch),
}

/// What became of a request of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BatchEntry {
    Judged(Verification),
    Refused { error: VerifyError },
}

/// The judgements, in the order of the requests.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    pub results: Vec<BatchEntry>,
}

/// A judgement, or those of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum VerifyAnswer {
    One(Verification),
    Batch(BatchAnswer),
}

/// Reads a body and judges it.
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
/// A state is what the task writes, as in a trace; instead, the lines from the start may be given. With `batch`, each
/// request has its own result, and one that is wrong does not harm the others.
#[utoipa::path(
    post, path = "/v1/verify", tag = "runs", operation_id = "verify",
    request_body(content = VerifyBody, examples(
        ("a step" = (value = json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "action": "move 1 0 2"}))),
        ("an answer" = (value = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "answer": {"sorted": [1, 2, 3], "comparisons": 3, "swaps": 2, "passes": 2}}))),
        ("a batch" = (value = json!({"batch": [{"task": "bubble-sort", "input": {"a": [2, 1]}, "action": "cmp 0 1"}]}))),
    )),
    responses((status = 200, description = "The judgement, or those of a batch", body = VerifyAnswer)),
)]
pub async fn judge(body: Body) -> Result<HttpResponse, ApiError> {
    // May compute for long; the threads that serve do not wait for it.
    let answer = web::block(move || judged(&body.0)).await;
    let answer = answer.map_err(|_| ApiError::internal("the request could not be carried through"))??;
    Ok(HttpResponse::Ok().json(answer))
}
