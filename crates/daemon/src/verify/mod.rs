//! Judges steps and answers without a run, one at a time or in batches, with a limit on the work of
//! a request.

mod pool;

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{ApiError, ErrorBody};
use super::guard::{Body, json};
use super::runs::owner_of;
use super::{State, method_not_allowed};
use prime_bench::judge::single::{Judge, Verification, VerifyError, VerifyRequest};

use pool::QueueFull;
pub use pool::{Abandoned, Pool};

/// Most requests of a batch.
const BATCH_MAX: usize = 10_000;
/// Most steps of references and lines that a request may take: eight times as many as one answer
/// may.
const STEPS_MAX: u64 = 1 << 24;
/// Most time of a processor that a request may take: steps of some tasks cost far more than those
/// of others.
const CPU_MAX: Duration = Duration::from_secs(10);
/// `Retry-After` where the queue is full.
const SOON: Duration = Duration::from_secs(1);

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

/// One request, or `{"batch": [...]}`. Only for the OpenAPI document: the two are parsed
/// separately, so that errors name the field.
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

/// The processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Parses a body and judges it.
pub(super) fn judged(body: &[u8], abandoned: &Abandoned) -> Result<VerifyAnswer, ApiError> {
    let until = cpu_time() + CPU_MAX;
    let may_go_on = || {
        if abandoned.is_so() {
            return Err("the client has left".to_owned());
        }
        if cpu_time() >= until {
            let seconds = CPU_MAX.as_secs();
            return Err(format!(
                "one request may compute for {seconds} s, which are spent: send the rest in another"
            ));
        }
        Ok(())
    };
    let mut judge = Judge::new(STEPS_MAX, &may_go_on);
    let is_batch = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body)
        .is_ok_and(|object| object.contains_key("batch"));
    if !is_batch {
        let request: VerifyRequest = json(body)?;
        return judge.judge(&request).map(VerifyAnswer::One).map_err(|error| match error.field {
            Some(field) => ApiError::bad_value(&field, error.message),
            None if may_go_on().is_err() => {
                ApiError::unprocessable("too_much_work", None, error.message)
            }
            None => ApiError::internal(error.message),
        });
    }
    let VerifyBatch { batch } = json(body)?;
    if batch.len() > BATCH_MAX {
        return Err(ApiError::bad_field(
            "batch",
            format!("has {} requests; give up to {BATCH_MAX}", batch.len()),
        ));
    }
    for (place, request) in batch.iter().enumerate() {
        request.check().map_err(|error| {
            let field = error.field.unwrap_or_default();
            ApiError::bad_value(&field, error.message).moved_to(&format!("batch[{place}].{field}"))
        })?;
    }
    let entry = |request: &VerifyRequest| match judge.judge(request) {
        Ok(verification) => BatchEntry::Judged(verification),
        Err(error) => BatchEntry::Refused { error },
    };
    Ok(VerifyAnswer::Batch(BatchAnswer { results: batch.iter().map(entry).collect() }))
}

/// Judges a step in a given state, or an answer, without a run.
///
/// The state is given in the task's own form, as in a trace, or by the action lines from the start.
/// With `batch`, each request has its own result: one that cannot be judged has an error and does
/// not affect the others. Only a batch with a request that does not follow the schema is refused as
/// a whole. A request may take 16,777,216 steps of references and lines, and 10 s of a processor;
/// what is left of a batch then has an error that says so. An instance that a batch names
/// repeatedly counts once.
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
    Ok(HttpResponse::Ok().json(verify(&state, &owner_of(&request), body.0).await?))
}

/// Judges a body on one of the threads for that.
pub(super) async fn verify(
    state: &State,
    owner: &str,
    body: web::Bytes,
) -> Result<VerifyAnswer, ApiError> {
    let ticket = state.verify.submit(owner, move |abandoned| judged(&body, abandoned));
    let ticket = ticket.map_err(|QueueFull| {
        let message = "many requests wait to be judged already: wait for those that you have sent";
        ApiError::too_many("verify_queue_full", message, SOON)
    })?;
    ticket.result().await.ok_or_else(|| ApiError::internal("the request could not be completed"))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn batch(second: &Value) -> Result<Value, ApiError> {
        let first = json!({"task": "bubble-sort", "input": {"a": [2, 1]}, "action": "cmp 0 1"});
        let body = json!({"batch": [first, second]}).to_string();
        judged(body.as_bytes(), &Abandoned::default())
            .map(|answer| serde_json::to_value(answer).unwrap())
    }

    #[test]
    fn a_batch_is_refused_for_what_breaks_its_schema_and_for_nothing_else() {
        for (second, field) in [
            (
                json!({"task": "bubble-sort", "input": {"a": [1]}, "action": "done", "kinds": []}),
                "batch[1].kinds",
            ),
            (json!({"task": "bubble-sort", "difficulty": "easy", "index": 200}), "batch[1].index"),
            (json!({"task": "bubble-sort", "action": 3}), "batch[1].action"),
        ] {
            let error = batch(&second).unwrap_err().body().error;
            assert_eq!(error.field.as_deref(), Some(field));
            assert!(error.message.starts_with(&format!("field `{field}`: ")), "{}", error.message);
        }
        let answer = batch(&json!({"task": "no-sort", "input": {}, "action": "done"})).unwrap();
        assert_eq!(answer["results"][0]["applicable"], true);
        assert_eq!(answer["results"][1]["error"]["field"], "task");
    }
}
