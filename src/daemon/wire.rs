//! What goes over the wire beside runs' records: requests, lists.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::catalog::TaskSlug;
use crate::app::Overrides;
use crate::runs::{ArmFigures, FlaggedStep, RunRecord, Status, Verdict};
use crate::settings::{StrategyName, VoteName};
use prime_bench::tasks::Difficulty;
use prime_problems::Definition;
use prime_protocol::Role;

/// A run to carry out: a task with an instance of the benchmark, or with an input.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The task's slug, as `GET /v1/tasks` lists it.
    #[schema(value_type = Option<TaskSlug>)]
    pub task: Option<String>,
    /// Of the benchmark's instance; easy where it is left out.
    pub difficulty: Option<Difficulty>,
    /// Of the benchmark's instance, 0 to 199.
    #[schema(maximum = 199)]
    pub index: Option<u32>,
    /// 42 is the benchmark; any other makes fresh instances.
    pub base_seed: Option<u64>,
    /// The task's own input, or a line of the benchmark, instead of difficulty, index and base seed.
    #[schema(value_type = Option<Object>)]
    pub input: Option<Value>,
    /// A problem of the client's own, instead of a task.
    #[schema(value_type = Option<Definition>)]
    pub problem: Option<Value>,
    /// The name of an entry of `presets`. What else stands here counts more.
    pub preset: Option<String>,
    /// How the run searches.
    pub strategy: Option<StrategyName>,
    /// How its answers are counted.
    pub vote: Option<VoteName>,
    /// Whether a proposal is begun before the verdict on the step before it.
    pub speculate: Option<bool>,
    /// Trajectories of a round.
    #[schema(minimum = 1, maximum = 256)]
    pub fanout: Option<u32>,
    #[schema(minimum = 1, maximum = 100)]
    pub max_rounds: Option<u32>,
    #[schema(maximum = 9_223_372_036_854_775_807_u64)]
    pub seed: Option<u64>,
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    #[serde(default)]
    pub budget: BudgetRequest,
    /// Implementations in place of the configured ones, as far as the configuration allows.
    #[serde(default)]
    pub agents: Overrides,
}

/// Headers of a new run. The document's own type.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never made")]
pub struct SubmitHeaders {
    /// Makes sending again harmless: 1 to 255 visible ASCII characters, new for each run.
    #[param(rename = "Idempotency-Key", nullable = false, pattern = "^[!-~]{1,255}$")]
    key: Option<String>,
    /// The caller's place in its trace (W3C Trace Context). One that is none counts as none.
    #[param(nullable = false)]
    traceparent: Option<String>,
}

/// Narrower limits than the configuration's.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetRequest {
    /// Proposals.
    #[schema(minimum = 1)]
    pub steps: Option<u64>,
    /// Prompt and completion tokens together.
    #[schema(minimum = 1)]
    pub tokens: Option<u64>,
    /// Milliseconds under way.
    #[schema(minimum = 1)]
    pub wall_ms: Option<u64>,
}

/// Which runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Where they stand.
    pub status: Option<Status>,
    /// A task's slug, or `problem`.
    pub task: Option<String>,
    /// `true`: only those with a step that asks for a person and that nobody has looked at.
    pub needs_review: Option<bool>,
    /// The last id of the page before.
    pub after: Option<String>,
    /// Runs of a page, 1 to 1,000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
}

/// Runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<RunRecord>,
    /// What to give as `after` for the next page; null at the end.
    pub next: Option<String>,
}

/// Which steps to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReviewsQuery {
    /// The last `seq` of the page before.
    pub after: Option<u64>,
    /// Steps of a page, 1 to 1,000; 100 where it is left out.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
}

/// Steps that ask for a person, in the order of their events.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewList {
    pub steps: Vec<FlaggedStep>,
    /// What to give as `after` for the next page; null at the end. A page may have fewer steps than `limit`.
    pub next: Option<u64>,
}

/// What a person says of a step.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// The number of the step's event.
    #[schema(minimum = 1)]
    pub seq: u64,
    pub verdict: Verdict,
    /// Why, for others; at most 4,000 bytes.
    #[serde(default)]
    #[schema(max_length = 4_000)]
    pub note: String,
}

/// Which runs to compare.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SplitQuery {
    /// Only runs that were accepted at this time or later, as `2026-02-03T04:05:06Z`; all where it is left out.
    #[param(format = DateTime)]
    pub since: Option<String>,
}

/// What the configured comparison came to so far.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitReport {
    /// `agents.split`; null where it is off. Runs may have taken part before.
    #[schema(required)]
    pub split: Option<SplitInfo>,
    /// By side and agents. Runs whose other agents differ stand apart.
    pub arms: Vec<ArmFigures>,
    /// All runs were counted; otherwise the newest of them, mostly 100,000.
    pub is_complete: bool,
}

/// `agents.split`.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitInfo {
    pub role: Role,
    /// The agent of side `a`.
    pub agent: String,
    /// The agent of side `b`.
    pub other: String,
    /// Share of the runs on side `b`, 0 to 1.
    pub share: f64,
}

/// Where to fork.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForkQuery {
    /// The last event that the new run takes over.
    pub seq: u64,
    /// Of what is drawn from there on; the parent's where it is left out.
    pub seed: Option<u64>,
}

/// From where to watch.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Only events after this one; the header `Last-Event-ID` wins.
    pub after: Option<u64>,
}

/// Headers of a reader that comes back. The document's own type.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never made")]
pub struct EventsHeaders {
    /// The last event that was seen; only those after it are sent.
    #[param(rename = "Last-Event-ID", nullable = false)]
    last: Option<u64>,
}

/// What a trace has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TraceQuery {
    /// With the state that each step was proposed in; true where it is left out.
    pub states: Option<bool>,
}

/// What finished runs may stay.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectRequest {
    /// Remove runs that ended more days ago; `journal.retention_days` where both are left out.
    #[schema(maximum = 36_500)]
    pub older_than_days: Option<u32>,
    /// Remove the oldest while the journal has more bytes.
    pub bytes_max: Option<u64>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Collected {
    pub runs: u64,
    pub events: u64,
    pub bytes: u64,
}
