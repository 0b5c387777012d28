//! Request and response types of the routes, apart from the record of a run.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use prime_protocol::{ApprovalVerdict, Role};
use prime_service::app::Overrides;
use prime_service::requests::BudgetRequest;
use prime_service::runs::{ApprovalRecord, ArmFigures, FlaggedStep, ReviewDecision};

/// Headers of a new run. Only for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never constructed")]
pub struct SubmitHeaders {
    /// Makes retries safe: 1 to 255 visible ASCII characters, unique per run.
    #[param(rename = "Idempotency-Key", nullable = false, pattern = "^[!-~]{1,255}$")]
    key: Option<String>,
    /// The caller's trace context (W3C Trace Context). A malformed one is ignored.
    #[param(nullable = false)]
    traceparent: Option<String>,
}

/// Which steps to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReviewsQuery {
    /// `next` of the previous page.
    pub after: Option<u64>,
    /// Steps per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
    /// Only steps that this name is to review; `me` is the key that asks, or `local` without keys;
    /// `none` are steps that are assigned to nobody.
    pub assignee: Option<String>,
}

/// Steps that need review, in the order of their events.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewList {
    pub steps: Vec<FlaggedStep>,
    /// `after` of the next page; null at the end. A page may have fewer steps than `limit`.
    pub next: Option<u64>,
}

/// A review of a step.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// The number of the step's event.
    #[schema(minimum = 1)]
    #[serde(deserialize_with = "prime_bench::json_integer::required")]
    pub seq: u64,
    pub verdict: ReviewDecision,
    /// The reason, for others; at most 4,000 bytes.
    #[serde(default)]
    #[schema(max_length = 4_000)]
    pub note: String,
}

/// The assignee of a step.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignRequest {
    /// The number of the step's event.
    #[schema(minimum = 1)]
    #[serde(deserialize_with = "prime_bench::json_integer::required")]
    pub seq: u64,
    /// `me`, the name of a key that may see the run, or without keys any name of up to 64
    /// characters; null for nobody.
    #[schema(required, max_length = 64)]
    #[serde(deserialize_with = "Option::deserialize")]
    pub assignee: Option<String>,
}

/// Which reviews to export as pairs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PairsQuery {
    /// Only those of this run; goes with `left_out` alone.
    pub run: Option<String>,
    /// Only those of runs of this task, by its slug.
    pub task: Option<String>,
    /// Only those of runs with this agent in any role.
    pub agent: Option<String>,
    /// Only those of runs with this model.
    pub model: Option<String>,
    /// Only those of runs with this label: `NAME` or `NAME:VALUE`.
    pub label: Option<String>,
    /// Only those of this key's runs, `*` for those of all; of other keys for an admin's key only.
    pub key: Option<String>,
    /// Only those of runs accepted at this time or later, as `2026-02-03T04:05:06Z`.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Only those of runs accepted before this time.
    #[param(format = DateTime)]
    pub before: Option<String>,
    /// `true`: also a line for each rejected step without a pair, which says why.
    pub left_out: Option<bool>,
}

/// Which steps that wait to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalsQuery {
    /// `next` of the previous page.
    pub after: Option<u64>,
    /// Steps per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
    /// Only those of this key's runs, `*` for those of all; of other keys for an admin's key only.
    pub key: Option<String>,
}

/// Steps that wait for approval, in the order in which they began to.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingApprovals {
    pub approvals: Vec<ApprovalRecord>,
    /// `after` of the next page; null at the end.
    pub next: Option<u64>,
}

/// Which approvals of a run to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunApprovalsQuery {
    /// `next` of the previous page.
    pub after: Option<u32>,
    /// Approvals per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
}

/// Approvals of a run, by number.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalList {
    pub approvals: Vec<ApprovalRecord>,
    /// `after` of the next page; null at the end.
    pub next: Option<u32>,
}

/// A decision about a step that waits.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    pub verdict: ApprovalVerdict,
    /// The reason: feedback to the executor if the line is rejected. At most 4,000 bytes.
    #[serde(default)]
    #[schema(max_length = 4_000, required = false)]
    pub reason: String,
    /// With `edit`: the line that takes the place of the other.
    #[schema(max_length = 65_536)]
    pub line: Option<String>,
}

/// Which runs to compare.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SplitQuery {
    /// Only runs accepted at this time or later, as `2026-02-03T04:05:06Z`; all by default.
    #[param(format = DateTime)]
    pub since: Option<String>,
}

/// The configured comparison so far.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitReport {
    /// `agents.split`; null while it is off, even if runs took part earlier.
    #[schema(required)]
    pub split: Option<SplitInfo>,
    /// Figures by side and agents. Runs whose other agents differ are listed separately.
    pub arms: Vec<ArmFigures>,
    /// True if all runs were counted; otherwise only the newest, usually 100,000.
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
    /// The last event to copy; with a `line`, the step whose place it takes.
    pub seq: u64,
    /// The seed from there on; the parent's by default.
    pub seed: Option<u64>,
}

/// What a fork changes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRequest {
    /// A line in place of that of the step `seq`, with which the fork begins.
    #[schema(nullable = false)]
    pub line: Option<String>,
    /// Agents that it uses instead of the parent's, among `server.allow_executors` and so on. With
    /// any, the others are taken by their names from the present configuration, not as the parent
    /// was accepted with them.
    #[serde(default)]
    pub agents: Overrides,
}

/// How to try a run again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// The seed of the new run; a random one by default.
    #[schema(maximum = 9_223_372_036_854_775_807_u64)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub seed: Option<u64>,
    /// False to leave out nothing of what was rejected; true by default.
    pub exclude: Option<bool>,
    /// True to try again what is verified.
    pub force: Option<bool>,
    /// Agents that it uses instead of the run's, as for a fork.
    #[serde(default)]
    pub agents: Overrides,
    /// Limits instead of the run's, within the configured ones; those that are not named stay.
    #[serde(default)]
    pub budget: BudgetRequest,
}

/// Where to start watching.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Only events after this one; the header `Last-Event-ID` takes precedence.
    pub after: Option<u64>,
}

/// Headers of a client that reconnects. Only for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "never constructed")]
pub struct EventsHeaders {
    /// The last event received; only later ones are sent.
    #[param(rename = "Last-Event-ID", nullable = false)]
    last: Option<u64>,
}

/// The content of a trace.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TraceQuery {
    /// Whether each step has the state that it was proposed in, and its reward; true by default.
    pub states: Option<bool>,
    /// Whether each step has what its executor asked its model, the completion, and the reward;
    /// false by default.
    pub prompts: Option<bool>,
}

/// Which finished runs to remove.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectRequest {
    /// Remove runs that ended more days ago. Without either field, the configured retention
    /// applies.
    #[schema(maximum = 36_500)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub older_than_days: Option<u32>,
    /// Remove runs while the journal is larger, the oldest of the key with the most bytes first.
    /// With a key that is not an admin's: the oldest of its own while its finished runs hold more.
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub bytes_max: Option<u64>,
}

/// What was removed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Collected {
    pub runs: u64,
    pub events: u64,
    pub bytes: u64,
    /// What stays because the journal is damaged there, at most a hundred entries; absent if
    /// nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub damaged: Vec<Unremovable>,
}

/// What cannot be removed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Unremovable {
    /// The run; empty if its id cannot be read, or if the entry is not a run.
    pub id: String,
    pub reason: String,
}
