//! Parses and judges the body of a request, with a limit on its work.

use std::time::Duration;

use actix_web::web::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::pool::{Abandoned, Pool, QueueFull};
use crate::error::ApiError;
use crate::guard::json;
use prime_bench::judge::single::{Judge, Verification, VerifyError, VerifyRequest};

/// Most requests of a batch.
const BATCH_MAX: usize = 10_000;
/// Most steps of references and lines that a request may take: eight times as many as one answer
/// may.
const STEPS_MAX: u64 = 1 << 24;
/// Most processor time that a request may take: steps of some tasks cost far more than those of
/// others.
const CPU_MAX: Duration = Duration::from_secs(10);
/// `Retry-After` where the queue is full.
const SOON: Duration = Duration::from_secs(1);

/// Requests that are judged independently.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBatch {
    /// Up to 10,000.
    #[schema(max_items = 10_000)]
    pub batch: Vec<VerifyRequest>,
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
pub fn judged(body: &[u8], abandoned: &Abandoned) -> Result<VerifyAnswer, ApiError> {
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
    // Parsed twice, because errors of an untagged enum name no field.
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
    // All of them before any is judged: a batch is refused as a whole or not at all.
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

/// Judges a body on one of the pool's threads.
pub async fn verify(pool: &Pool, owner: &str, body: Bytes) -> Result<VerifyAnswer, ApiError> {
    let ticket = pool.submit(owner, move |abandoned| judged(&body, abandoned));
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
            (json!({"task": "bubble-sort", "difficulty": "easy", "index": 1000}), "batch[1].index"),
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
