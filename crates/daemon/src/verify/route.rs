//! The route that judges.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;

use super::judged::{VerifyAnswer, VerifyBatch, verify};
use crate::error::{ApiError, ErrorBody, method_not_allowed};
use crate::guard::Body;
use crate::request_context::owner_of;
use crate::state::State;
use prime_bench::judge::single::VerifyRequest;

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/verify")
            .route(web::post().to(judge))
            .default_service(web::to(|| method_not_allowed("POST"))),
    );
}

/// One request, or `{"batch": [...]}`. Only for the OpenAPI document: the two are parsed
/// separately, so that errors name the field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never constructed")]
enum VerifyBody {
    One(Box<VerifyRequest>),
    Batch(VerifyBatch),
}

/// Judges a step in a given state, or an answer, without a run.
///
/// The state is given in the task's own form, as in a trace, or by the action lines from the start.
/// With `batch`, each request has its own result: one that cannot be judged has an error and does
/// not affect the others. Only a batch with a request that does not follow the schema is refused as
/// a whole. A request may take 16,777,216 steps of references and lines, and 10 s of a processor;
/// after that, the rest of a batch gets an error that says so. An instance that a batch names
/// repeatedly counts once.
///
/// A task of your own is judged by its program or module, from an `input`; a request waits up to 30
/// s for it. Its answers are judged only with the lines that lead to them.
#[utoipa::path(
    post, path = "/v1/verify", tag = "runs", operation_id = "verify",
    request_body(content = VerifyBody, examples(
        ("a step" = (value = json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "action": "move 1 0 2"}))),
        ("an answer" = (value = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "answer": {"sorted": [1, 2, 3], "comparisons": 3, "swaps": 2, "passes": 2}}))),
        ("a batch" = (value = json!({"batch": [{"task": "bubble-sort", "input": {"a": [2, 1]}, "action": "cmp 0 1"}]}))),
    )),
    responses(
        (status = 200, description = "The judgement, or the results of a batch", body = VerifyAnswer),
        (status = 422, description = "It takes too much computing", body = ErrorBody),
    ),
)]
pub async fn judge(
    state: web::Data<State>,
    request: HttpRequest,
    body: Body,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_of(&request);
    let own = state.runs.app().tasks().of_owner(&owner);
    Ok(HttpResponse::Ok().json(verify(&state.verify, &owner, own, body.0).await?))
}
