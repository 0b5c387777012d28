//! The JSON format of a client's problem.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use prime_bench::tasks::Severity;

/// A problem of a client's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Problem))]
pub struct Definition {
    /// The problem statement.
    pub statement: String,
    /// The data that the statement speaks of: any JSON.
    #[serde(default)]
    pub input: Value,
    /// Whether lines are steps before an answer, or only the answer.
    #[serde(default)]
    pub steps: StepMode,
    /// What a step looks like, where lines are steps; any text where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<LineForm>,
    /// Most lines of a trace, the answer included, where lines are steps: 1 to 10,000.
    #[serde(
        default,
        deserialize_with = "prime_bench::json_integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 10_000))]
    pub max_steps: Option<u64>,
    /// Most proposals of a trajectory, rejected ones included: 1 to 1,000,000. Without it, only the
    /// budget of the run ends an executor that guesses.
    #[serde(
        default,
        deserialize_with = "prime_bench::json_integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000))]
    pub max_proposals: Option<u64>,
    /// What an answer looks like; any text where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<LineForm>,
    /// What the steps and the answer must obey.
    #[serde(default)]
    pub constraints: Vec<ConstraintDefinition>,
}

/// How a trace comes to its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepMode {
    /// One line, which is the answer.
    #[default]
    Single,
    /// A line is a step; the line `answer: TEXT` is the last one.
    Stepwise,
}

/// What an answer or a step looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LineForm {
    /// A regular expression that the whole text matches. An answer is a string; a step is one as
    /// well, or, if the expression has named groups, a map of what they match.
    Pattern(String),
    /// A JSON Schema. The text is JSON that is valid under it, and the answer or step is its value.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    Schema(Value),
}

/// A constraint: either a `check`, which is evaluated, or a `text`, which a verifier reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ConstraintDefinition {
    /// What verdicts call it.
    pub name: String,
    /// How bad it is to break it.
    pub severity: Severity,
    /// A CEL expression over `input`, `step`, `previous`, `steps`, `state` and `answer` that must
    /// be true. With `answer` in it, it is evaluated at the end; with `step` or `previous`, after
    /// every step; else after every line. The keys of a map come in no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// What the model is told when the check fails; the check itself where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The constraint in words, for a verifier that reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
