//! What a run is asked for, as the journal keeps it: enough to begin it again anywhere.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::agents::Names;
use crate::app::Overrides;
use crate::report::Arm;
use crate::runtime::RunSampling;
use prime_bench::tasks::{self, Problem};
use prime_protocol::RunPlan;

/// A step of another run that a run begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    pub run: String,
    /// The last event that is taken over.
    pub seq: u64,
}

/// Everything about a run that is fixed when it is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The task's slug; `problem` for a client's own.
    pub task: String,
    /// The instance's name, or `input`.
    pub instance: String,
    /// The task's input object; the whole definition of a client's own problem.
    pub input: Value,
    pub plan: RunPlan,
    pub sampling: RunSampling,
    /// What the request put in place of the configured agents.
    #[serde(default)]
    pub overrides: Overrides,
    /// The agents that this came to.
    pub agents: Names,
    /// What a reader must know of the agents before comparing.
    #[serde(default)]
    pub notes: Vec<String>,
    pub config_hash: String,
    /// Its side of the comparison that `agents.split` made, if it takes part; `overrides` has the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Arm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Origin>,
    /// The caller's trace context (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RunSpec {
    /// The problem to solve.
    ///
    /// # Errors
    /// When this version does not know the task, or not in this form.
    pub fn problem(&self) -> Result<Arc<dyn Problem>, String> {
        if self.task == prime_problems::SPEC.slug {
            return prime_problems::Custom::read(&self.input)
                .map(|custom| custom.problem())
                .map_err(|error| error.to_string());
        }
        let task = tasks::find(&self.task).map_err(|error| error.to_string())?;
        task.read_input(&self.input).map_err(|error| error.to_string())
    }
}
