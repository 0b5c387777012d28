//! Parses and judges the body of a request, with a limit on its work.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::pool::{Abandoned, Pool, QueueFull};
use crate::error::ApiError;
use crate::guard::json;
use prime_agent_set::task_program::{OpenError, TaskPrograms};
use prime_bench::judge::single::{Judge, Verification, VerifyError, VerifyRequest};
use prime_bench::tasks::{self, Problem};

/// Most requests of a batch.
const BATCH_MAX: usize = 10_000;
/// Most steps of references and lines that a request may take: eight times as many as one answer
/// may.
const STEPS_MAX: u64 = 1 << 24;
/// Most processor time that a request may take: steps of some tasks cost far more than those of
/// others.
const CPU_MAX: Duration = Duration::from_secs(10);
/// Most time that a request may wait for programs and modules.
const OWN_MAX: Duration = Duration::from_secs(30);
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

/// The names of the tasks that a body is about.
#[derive(Default, Deserialize)]
struct Names {
    task: Option<String>,
    #[serde(default)]
    batch: Vec<Names>,
}

/// True if a body names a task that is not built in, which may have to be waited for.
fn names_own(body: &[u8]) -> bool {
    // What cannot be read is refused when it is judged.
    let names: Names = serde_json::from_slice(body).unwrap_or_default();
    let is_own = |name: &str| tasks::find(name).is_err();
    let mut all = names.batch.iter().chain([&names]).filter_map(|names| names.task.as_deref());
    all.any(is_own)
}

/// An input of a task that is a program or a module; `None` if there is no such task.
fn own_instance(
    own: &TaskPrograms,
    task: &str,
    input: Option<&Value>,
) -> Option<Result<Arc<dyn Problem>, VerifyError>> {
    let program = match own.get(task) {
        Ok(program) => program?,
        Err(error) => return Some(Err(VerifyError::at("task", error))),
    };
    let Some(input) = input else {
        let message = "is missing: a task of your own has no instances of the benchmark";
        return Some(Err(VerifyError::at("input", message)));
    };
    Some(program.open(own.asker(), input).map_err(|error| {
        let field = if matches!(error, OpenError::Refused { .. }) { "input" } else { "task" };
        VerifyError::at(field, error)
    }))
}

/// Parses a body and judges it, with these tasks that are not built in.
pub fn judged(
    body: &[u8],
    abandoned: &Abandoned,
    own: &TaskPrograms,
) -> Result<VerifyAnswer, ApiError> {
    let (until, late) = (cpu_time() + CPU_MAX, Instant::now() + OWN_MAX);
    let is_own = names_own(body);
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
        if is_own && Instant::now() >= late {
            let seconds = OWN_MAX.as_secs();
            return Err(format!(
                "one request may wait {seconds} s for tasks of your own, which are over: send the \
                 rest in another"
            ));
        }
        Ok(())
    };

    let own = |task: &str, input: Option<&Value>| own_instance(own, task, input);
    let mut judge = Judge::new(STEPS_MAX, &may_go_on).with_own(&own);
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

/// The threads that judge: those for built-in tasks wait for no program.
pub struct Pools {
    built_in: Pool,
    own: Pool,
}

impl Pools {
    /// # Errors
    /// When a thread cannot be started.
    pub fn start() -> std::io::Result<Self> {
        Ok(Self { built_in: Pool::computing()?, own: Pool::waiting()? })
    }
}

/// Judges a body on one of the threads, for an owner who has these tasks that are not built in.
pub async fn verify(
    pools: &Pools,
    owner: &str,
    own: TaskPrograms,
    body: Bytes,
) -> Result<VerifyAnswer, ApiError> {
    let pool = if names_own(&body) { &pools.own } else { &pools.built_in };
    let ticket = pool.submit(owner, move |abandoned| judged(&body, abandoned, &own));
    let ticket = ticket.map_err(|QueueFull| {
        let message = "many requests wait to be judged already: wait for those that you have sent";
        ApiError::too_many("verify_queue_full", message, SOON)
    })?;
    ticket.result().await.ok_or_else(|| ApiError::internal("the request could not be completed"))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn batch(second: &Value) -> Result<Value, ApiError> {
        let first = json!({"task": "bubble-sort", "input": {"a": [2, 1]}, "action": "cmp 0 1"});
        let body = json!({"batch": [first, second]}).to_string();
        judged(body.as_bytes(), &Abandoned::default(), &TaskPrograms::default())
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
