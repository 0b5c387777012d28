//! What a client may ask for: the fields of a run's request, on all ways into the service.

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder};
use utoipa::openapi::{RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::app::Overrides;
use crate::runs::{LabelMap, Labels};
use prime_bench::tasks::{self, Difficulty};
use prime_problems::Definition;
use prime_settings::{ApproveElse, StrategyName, VoteName};

/// A run to execute: an instance of the benchmark, a task with an input, or a custom problem.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The task's slug, as `GET /v1/tasks` lists it.
    #[schema(value_type = Option<TaskSlug>)]
    pub task: Option<String>,
    /// Difficulty of the benchmark instance; `easy` by default.
    pub difficulty: Option<Difficulty>,
    /// Index of the instance, 0 to 999, of which the benchmark has 0 to 199.
    #[schema(maximum = 999)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub index: Option<u32>,
    /// 42 is the benchmark; any other generates fresh instances.
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub base_seed: Option<u64>,
    /// The task's own input, or a line of the benchmark, instead of difficulty, index and base
    /// seed.
    #[schema(value_type = Option<Object>)]
    pub input: Option<Value>,
    /// A custom problem, instead of a task.
    #[schema(value_type = Option<Definition>)]
    pub problem: Option<Value>,
    /// The name of an entry of `presets`. The other fields take precedence.
    pub preset: Option<String>,
    /// How the run searches.
    pub strategy: Option<StrategyName>,
    /// How its answers are counted.
    pub vote: Option<VoteName>,
    /// True if a proposal starts before the verdict on the previous step.
    pub speculate: Option<bool>,
    /// Trajectories per round.
    #[schema(minimum = 1, maximum = 256)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub fanout: Option<u32>,
    /// Maximum number of rounds, each ended by a vote.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub max_rounds: Option<u32>,
    /// Seed of the run, from which the seeds of all turns are derived.
    #[schema(maximum = 9_223_372_036_854_775_807_u64)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub seed: Option<u64>,
    /// Sampling temperature; 0 is greedy.
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    /// Nucleus sampling: only the likeliest tokens with this probability in total are drawn.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    /// Limits of the run.
    #[serde(default)]
    pub budget: BudgetRequest,
    /// Agents instead of the configured ones, as far as the configuration allows.
    #[serde(default)]
    pub agents: Overrides,
    /// Labels, by which runs are found: up to 16 names of 1 to 64 letters, digits, `.`, `_`, `-`
    /// and `/`, with values of up to 128 characters, without characters that control how a text
    /// is shown.
    #[serde(default)]
    #[schema(value_type = LabelMap, required = false)]
    pub labels: Labels,
    /// Which steps wait for approval before they are committed: `flagged`, `every N steps`, or a CEL
    /// expression over `step` (`run.approve`). Not if the daemon has a rule of its own.
    #[schema(max_length = 1000)]
    pub approve: Option<String>,
    /// Milliseconds within which a step that waits must be decided.
    #[schema(minimum = 1, maximum = 31_536_000_000_u64)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub approve_within_ms: Option<u64>,
    /// What happens to a step that nobody has decided in time.
    pub approve_else: Option<ApproveElse>,
    /// Whether to try a task that the executor's models have not learnt.
    pub force: Option<bool>,
    /// Runs with a higher one begin first, -100 to 100; 0 by default, or the largest that the key
    /// may have if that is less. While a run waits, it gains
    /// one level per `queue.aging_ms`.
    #[schema(minimum = -100, maximum = 100)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub priority: Option<i32>,
    /// The time before which the run does not begin: RFC 3339.
    #[schema(format = DateTime)]
    pub not_before: Option<String>,
    /// The time at which the run ends with the best answer so far, whether it has begun or not: RFC
    /// 3339.
    #[schema(format = DateTime)]
    pub deadline: Option<String>,
}

/// Limits within the configured ones.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetRequest {
    /// Proposals.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub steps: Option<u64>,
    /// Prompt and completion tokens together.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub tokens: Option<u64>,
    /// Completion tokens of all trajectories and rounds.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub completion_tokens: Option<u64>,
    /// Cost of the tokens that have a price, in the currency of the prices.
    #[schema(exclusive_minimum = 0.0, maximum = 1_000_000_000.0)]
    pub cost: Option<f64>,
    /// Milliseconds of run time.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "prime_bench::json_integer::optional")]
    pub wall_ms: Option<u64>,
}

/// The slug of a task; the OpenAPI document enumerates those of the built-in ones.
pub struct TaskSlug;

/// The names that a configured task may have.
const OWN_NAME: &str = "^[a-z0-9_-]{1,64}$";

impl PartialSchema for TaskSlug {
    fn schema() -> RefOr<Schema> {
        let slugs = tasks::all().chain(tasks::variants()).map(|task| task.spec().slug);
        let built_in = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(slugs));
        let own = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(OWN_NAME))
            .description(Some("A task of the configuration that a program computes."));
        AnyOfBuilder::new().item(built_in).item(own).into()
    }
}

impl ToSchema for TaskSlug {}
