//! What carries out the calls that need runs or the judge.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use async_trait::async_trait;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::approvals::{decide_for, waiting_for};
use crate::error::ApiError;
use crate::guard::{Owner, json};
use crate::request_context::owned_run;
use crate::run_calls::{cancel_run, retry_run};
use crate::run_list::list_runs;
use crate::state::State;
use crate::submit::submit_run;
use crate::verify::verify;
use prime_agent_set::task_program::TaskPrograms;
use prime_service::requests::RequestError;
use prime_service::runs::RunError;

/// The longest that a call waits for events.
pub const WAIT_MAX: Duration = Duration::from_secs(30);
/// The most events of one call.
pub const EVENTS_MAX: usize = 200;

/// Why a call failed, for the model that made it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<ApiError> for ToolError {
    fn from(error: ApiError) -> Self {
        Self(error.to_string())
    }
}

impl From<RequestError> for ToolError {
    fn from(error: RequestError) -> Self {
        Self(error.to_string())
    }
}

impl From<RunError> for ToolError {
    fn from(error: RunError) -> Self {
        Self(error.to_string())
    }
}

/// Which events of a run to return, and how long to wait for the first of them.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The number of the last event already seen; 0 for none.
    pub after: u64,
    /// Longest wait for the first event, at most [`WAIT_MAX`].
    pub wait: Duration,
}

/// Events of a run, and its record after them.
#[derive(Debug, Serialize)]
pub struct Watched {
    /// Each with its number, `seq`.
    pub events: Vec<Value>,
    /// The number of the last event: `after` of the next call.
    pub after: u64,
    pub run: Value,
}

/// Carries out calls. Arguments are those of the HTTP API's routes.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The tasks that are programs or modules, which block.
    fn own_tasks(&self) -> TaskPrograms {
        TaskPrograms::default()
    }

    /// Like `POST /v1/verify`.
    async fn verify(&self, request: Map<String, Value>) -> Result<Value, ToolError>;
    /// Like `POST /v1/runs`.
    async fn start(&self, request: Map<String, Value>) -> Result<Value, ToolError>;
    /// Like `GET /v1/runs`.
    async fn list(&self, query: Map<String, Value>) -> Result<Value, ToolError>;
    /// Like `GET /v1/runs/{id}`.
    async fn read(&self, id: &str) -> Result<Value, ToolError>;
    /// Like `GET /v1/runs/{id}/events`, at most [`EVENTS_MAX`] of them, with their numbers.
    async fn events(&self, id: &str, watch: Watch) -> Result<Vec<(u64, Value)>, ToolError>;
    /// Like `POST /v1/runs/{id}/cancel`.
    async fn cancel(&self, id: &str) -> Result<Value, ToolError>;
    /// Like `POST /v1/runs/{id}/retry`.
    async fn retry(&self, id: &str, request: Map<String, Value>) -> Result<Value, ToolError>;
    /// Like `GET /v1/approvals`.
    async fn approvals(&self, query: Map<String, Value>) -> Result<Value, ToolError>;
    /// Like `POST /v1/runs/{id}/approvals/{number}`.
    async fn decide(
        &self,
        id: &str,
        number: u32,
        decision: Map<String, Value>,
    ) -> Result<Value, ToolError>;
}

/// This process, on behalf of an owner of runs.
pub struct Local {
    state: web::Data<State>,
    asking: Owner,
}

impl Local {
    pub fn new(state: web::Data<State>, asking: Owner) -> Self {
        Self { state, asking }
    }
}

fn value(result: impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(result).map_err(|error| ToolError(error.to_string()))
}

/// Arguments as the body of a request, so that errors name fields as the routes do.
fn body(arguments: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec(arguments).expect("invariant: JSON values serialise")
}

#[async_trait]
impl Backend for Local {
    fn own_tasks(&self) -> TaskPrograms {
        self.state.runs.app().tasks().of_owner(&self.asking.name)
    }

    async fn verify(&self, request: Map<String, Value>) -> Result<Value, ToolError> {
        let own = self.own_tasks();
        value(verify(&self.state.verify, &self.asking.name, own, body(&request).into()).await?)
    }

    async fn start(&self, request: Map<String, Value>) -> Result<Value, ToolError> {
        let wanted = json(&body(&request))?;
        value(submit_run(&self.state, &self.asking.name, None, None, wanted).await?.record)
    }

    async fn list(&self, query: Map<String, Value>) -> Result<Value, ToolError> {
        let wanted = json(&body(&query))?;
        value(list_runs(&self.state, &self.asking, wanted).await?)
    }

    async fn read(&self, id: &str) -> Result<Value, ToolError> {
        value(owned_run(&self.state, &self.asking, id).await?)
    }

    async fn events(&self, id: &str, watch: Watch) -> Result<Vec<(u64, Value)>, ToolError> {
        owned_run(&self.state, &self.asking, id).await?;

        let deadline = Instant::now() + watch.wait;
        let mut batches = Box::pin(self.state.runs.reader().events(id, watch.after, true));
        let mut found = Vec::new();

        while found.is_empty() {
            let Ok(Some(batch)) = timeout_at(deadline, batches.next()).await else { break };
            for (seq, event) in batch?.events().take(EVENTS_MAX) {
                let event =
                    serde_json::from_slice(event).map_err(|error| ToolError(error.to_string()))?;
                found.push((seq, event));
            }
        }

        Ok(found)
    }

    async fn cancel(&self, id: &str) -> Result<Value, ToolError> {
        owned_run(&self.state, &self.asking, id).await?;
        value(cancel_run(&self.state, id).await?)
    }

    async fn retry(&self, id: &str, request: Map<String, Value>) -> Result<Value, ToolError> {
        let wanted = json(&body(&request))?;
        value(retry_run(&self.state, &self.asking, id, wanted, None).await?.record)
    }

    async fn approvals(&self, query: Map<String, Value>) -> Result<Value, ToolError> {
        let wanted = json(&body(&query))?;
        value(waiting_for(&self.state, &self.asking, wanted).await?)
    }

    async fn decide(
        &self,
        id: &str,
        number: u32,
        decision: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        let wanted = json(&body(&decision))?;
        value(decide_for(&self.state, &self.asking, id, number, wanted).await?)
    }
}

/// Where to continue in a run's events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchArguments {
    pub run: String,
    #[serde(default)]
    pub after: u64,
    #[serde(default)]
    pub wait_ms: u64,
}

/// Events of a run and its record. An event that came between the two is in the next call.
pub async fn watch(
    backend: &Arc<dyn Backend>,
    arguments: &WatchArguments,
) -> Result<Watched, ToolError> {
    let wait = Duration::from_millis(arguments.wait_ms).min(WAIT_MAX);

    let events = backend.events(&arguments.run, Watch { after: arguments.after, wait }).await?;
    // Without events, the next call asks for the same ones.
    let after = events.last().map_or(arguments.after, |(seq, _)| *seq);
    let run = backend.read(&arguments.run).await?;

    let numbered = events.into_iter().map(|(seq, mut event)| {
        if let Some(fields) = event.as_object_mut() {
            fields.insert("seq".to_owned(), seq.into());
        }
        event
    });

    Ok(Watched { events: numbered.collect(), after, run })
}
