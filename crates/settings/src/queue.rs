//! Which runs begin first, how many at once, and how many are accepted in a minute. No logic here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Section `queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Maximum runs that one daemon executes at once; further ones wait in the order of their
    /// priority. 0 = as many as the rings hold (`runtime.cells` × `runtime.in_flight_max` turns).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub running_max: u32,
    /// Waiting time in milliseconds that is worth one level of priority: a run that has waited for
    /// so long comes before one that has just been accepted with a priority of one more.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub aging_ms: u64,
    /// Maximum runs of one key that one daemon executes at once; further ones wait while others
    /// pass. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub key_running_max: u32,
    /// Maximum runs of one key that one daemon accepts in a minute; further ones are refused with
    /// status 429. So many are accepted at once, and then one after the other. 0 = no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub key_runs_per_minute: u32,
    /// The largest priority that a request may have.
    #[schemars(range(min = -100, max = 100))]
    pub key_priority_max: i32,
    /// The limits of single tasks, by slug; `problem` for custom problems.
    #[serde(default)]
    pub tasks: BTreeMap<String, TaskQueue>,
}

/// One entry of `queue.tasks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskQueue {
    /// Maximum runs of the task that one daemon executes at once, of all keys. 0 or omitted = no
    /// limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub running_max: u32,
    /// Maximum runs of the task that one daemon accepts in a minute, of all keys. 0 or omitted = no
    /// limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub runs_per_minute: u32,
}
