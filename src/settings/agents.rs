//! Section `agents`: which implementation plays each role, and its options. A definition, a file below
//! `agents.folder`, is one of these sections under a name of its own.
//!
//! As in `sections.rs`, a field's doc comment is its public documentation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::program::Program;
use prime_bench::tasks::Kind;
use prime_protocol::Role;

/// An implementation of a role: a value of `agents.<role>.implementation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implementation {
    pub name: &'static str,
    pub about: &'static str,
    /// The options of its role's section that it uses; a definition with any other is refused.
    pub options: &'static [&'static str],
}

const fn row(name: &'static str, about: &'static str, options: &'static [&'static str]) -> Implementation {
    Implementation { name, about, options }
}

/// Options of executors that ask a model; of `llama` an engine's, of `openai` a pool's.
const MODEL_EXECUTOR: &[&str] = &[
    "engine",
    "pool",
    "max_tokens",
    "prompt",
    "system",
    "history",
    "history_steps",
    "chat",
    "grammar",
    "temperature",
    "top_p",
];

/// Options of verifiers that ask a model.
const MODEL_VERIFIER: &[&str] = &[
    "engine",
    "pool",
    "verdict",
    "confidence_min",
    "kinds",
    "max_tokens",
    "prompt",
    "system",
    "history",
    "history_steps",
    "chat",
    "grammar",
];

/// Options of coordinators that ask a model.
const MODEL_COORDINATOR: &[&str] =
    &["engine", "pool", "prompt", "system", "history", "history_steps", "chat", "asks_when_clean"];

/// Known values of `agents.executor.implementation`.
pub const EXECUTORS: [Implementation; 7] = [
    row("llama", "a model through llama.cpp, on an engine of this machine", MODEL_EXECUTOR),
    row(
        "openai",
        "a model behind OpenAI-compatible servers: llama-server, vLLM, SGLang or a hosted API",
        MODEL_EXECUTOR,
    ),
    row("process", "a program of yours, in any language, over JSON Lines", &["program"]),
    row("reference", "the task's own algorithm; no model, and labelled so in every output", &[]),
    row("scripted", "the algorithm with errors, by seed; for tests", &["error_rate"]),
    row("replay", "given or recorded proposals, in order; for tests and debugging", &["lines", "recording"]),
    row("escalation", "a small executor first, a large one on disagreement", &["escalation"]),
];

/// Known values of `agents.verifier.implementation`.
pub const VERIFIERS: [Implementation; 7] = [
    row("rules", "the task's constraints of the chosen kinds (the paper's lightweight verifier)", &["kinds"]),
    row("llama", "a model through llama.cpp, with the paper's prompt or a single token", MODEL_VERIFIER),
    row(
        "openai",
        "a model behind OpenAI-compatible servers, with the paper's prompt or a single token",
        MODEL_VERIFIER,
    ),
    row("process", "a program of yours, in any language, over JSON Lines", &["program", "kinds"]),
    row("ensemble", "several verifiers side by side: the median of their scores", &["ensemble"]),
    row("reference", "exact, by the task's algorithm; for training and evaluation only", &[]),
    row("none", "accepts everything; no answer is then called verified", &[]),
];

/// Known values of `agents.coordinator.implementation`.
pub const COORDINATORS: [Implementation; 5] = [
    row("adaptive", "thresholds that follow the observed rate of rejections", &["adaptive"]),
    row("llama", "a model that sees the verdict and names a decision", MODEL_COORDINATOR),
    row("openai", "a model behind OpenAI-compatible servers that sees the verdict", MODEL_COORDINATOR),
    row("process", "a program of yours, in any language, over JSON Lines", &["program"]),
    row("threshold", "compares the violation score with run.tau_soft and run.tau_hard (the paper's policy)", &[]),
];

/// The implementations of a role.
pub fn implementations(role: Role) -> &'static [Implementation] {
    match role {
        Role::Executor => &EXECUTORS,
        Role::Verifier => &VERIFIERS,
        Role::Coordinator => &COORDINATORS,
    }
}

/// The schema of the name of an implementation or a definition.
pub(super) fn agent_name(role: &str) -> serde_json::Value {
    serde_json::json!({ "type": "string", "format": role })
}

/// Section `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// Folder of role definitions: `executor/NAME.toml`, `verifier/NAME.toml` and `coordinator/NAME.toml`, each with the
    /// options of its role's section, and templates `*.j2` beside them. A relative path starts at the working directory.
    /// What is there counts before the built-in definition of the same name.
    pub folder: String,
    /// Proposes the next step.
    pub executor: ExecutorAgent,
    /// Scores the violations of a step.
    pub verifier: VerifierAgent,
    /// Decides Proceed, Retry or Backtrack.
    pub coordinator: CoordinatorAgent,
    /// An A/B comparison: a share of the runs gets another agent in one role.
    pub split: Split,
}

/// Section `agents.executor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutorAgent {
    /// What a definition is for, in words.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who proposes steps: the name of an implementation, with the options of this section, or of a definition.
    /// `llama` (a model through llama.cpp), `openai` (a model behind OpenAI-compatible servers), `process` (a program of
    /// yours), `escalation` (a small executor, and a large one on disagreement), `reference` (the algorithm itself;
    /// labelled as such in every output), `scripted` (the algorithm with errors at `error_rate`, by seed; for tests) or
    /// `replay` (the given `lines` or a `recording`; for tests and for trying out checks).
    #[schemars(extend("format" = "executor"))]
    pub implementation: String,
    /// Name of the entry of `engines` that `llama` asks.
    pub engine: String,
    /// Name of the entry of `pools` that `openai` asks.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// Most tokens of one proposal. A longer one is cut off and counts as unparsable.
    #[schemars(range(min = 1, max = 32_768))]
    pub max_tokens: u32,
    /// Template of the prompt: the file `executor/NAME.j2` below `agents.folder`, or a built-in one: `compact` (one line; what the
    /// shipped model was trained on) or `step` (the whole task in words, for models that follow instructions).
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Template of the instructions that stay the same from turn to turn; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// How many of the committed steps the prompt shows: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Committed steps that `history = "window"` shows.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// Whether `llama` puts the prompt into the chat template of the model's file; otherwise the model continues the text.
    pub chat: bool,
    /// Whether answers are held to the task's grammar: one free line at most, then an action. Without it the last line of
    /// a free answer is taken. A server is held to it where its `dialect` can be.
    pub grammar: bool,
    /// Sampling temperature in place of `run.temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Nucleus sampling in place of `run.top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub top_p: Option<f64>,
    /// Probability of a wrong proposal of `scripted`, per step.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_rate: f64,
    /// What `replay` proposes: the first line first, from the first again after the last.
    #[schemars(length(max = 1_000_000))]
    pub lines: Vec<String>,
    /// In place of `lines`: a recorded run whose proposals `replay` makes again, a file that `prime-agents run --trace` or
    /// `prime-agents runs trace` wrote. Empty = none.
    #[schemars(extend("format" = "words"))]
    pub recording: String,
    /// Options of `escalation`.
    pub escalation: Escalation,
    /// Options of `process`.
    #[serde(default)]
    pub program: Program,
}

/// Section `agents.executor.escalation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    /// The executor that is asked first: an implementation or a definition.
    #[schemars(extend("format" = "executor"))]
    pub small: String,
    /// The executor that is asked when the first one's proposals differ.
    #[schemars(extend("format" = "executor"))]
    pub large: String,
    /// Proposals of the small executor for one step; when all are the same, it is proposed.
    #[schemars(range(min = 1, max = 64))]
    pub samples: u32,
    /// Rejections at one state after which the large executor is asked at once.
    #[schemars(range(min = 1, max = 1_000))]
    pub after_rejections: u32,
}

/// Section `agents.verifier`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifierAgent {
    /// What a definition is for, in words.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who checks steps: the name of an implementation, with the options of this section, or of a definition. `rules`
    /// (the task's constraints, of the chosen `kinds`), `llama` (a model through llama.cpp), `openai` (a model behind
    /// OpenAI-compatible servers), `ensemble` (the median of several), `process` (a program of yours), `reference` (exact,
    /// by the task's algorithm; for training and evaluation only) or `none` (accepts everything; no answer is then called
    /// verified).
    #[schemars(extend("format" = "verifier"))]
    pub implementation: String,
    /// Kinds of constraints that `rules` checks. Every result names them. `transition` decides most steps of many tasks
    /// outright, so it is left out of the default.
    #[schemars(length(min = 1, max = 4))]
    pub kinds: Vec<Kind>,
    /// Name of the entry of `engines` that `llama` asks.
    pub engine: String,
    /// Name of the entry of `pools` that `openai` asks.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// What a model writes: `report` (the paper's: each constraint with PASS or FAIL, and a score), `token` (`1` or `0`, with
    /// its log-probability; for small models that were trained to it) or `likelihood` (asked as an executor is and held to the
    /// proposed line after one free line of its own; for the models of executors).
    pub verdict: VerdictName,
    /// Least probability. A less probable `1` of `verdict = "token"` counts as a minor violation; an answer of `likelihood`
    /// with a less probable token makes the step wrong (0 there = 0.05). 0 = off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence_min: f64,
    /// Most tokens of a report, or of an answer of `likelihood`.
    #[schemars(range(min = 1, max = 32_768))]
    pub max_tokens: u32,
    /// Template of the prompt: the file `verifier/NAME.j2` below `agents.folder`, or a built-in one: `check` (the paper's),
    /// `token` or `likelihood`. Empty = the one that goes with `verdict`.
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Template of the instructions that stay the same from turn to turn; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// How many of the committed steps the prompt shows: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Committed steps that `history = "window"` shows.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// Whether `llama` puts the prompt into the chat template of the model's file; otherwise the model continues the text.
    pub chat: bool,
    /// Whether a report is held to its grammar. A server is held to it where its `dialect` can be.
    pub grammar: bool,
    /// Options of `ensemble`.
    pub ensemble: Ensemble,
    /// Options of `process`.
    #[serde(default)]
    pub program: Program,
}

/// Section `agents.verifier.ensemble`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ensemble {
    /// The verifiers that judge each step side by side: implementations or definitions.
    #[schemars(length(min = 1, max = 16), extend("items" = agent_name("verifier")))]
    pub members: Vec<String>,
    /// Difference between the highest and the lowest score (the paper's δ) above which a step is marked for review by a
    /// person.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub delta: f64,
}

/// Section `agents.coordinator`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorAgent {
    /// What a definition is for, in words.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who decides: the name of an implementation, with the options of this section, or of a definition. `threshold`
    /// (compares the violation score with `run.tau_soft` and `run.tau_hard`), `adaptive` (the same, with thresholds that
    /// follow the observed rate of rejections), `llama` or `openai` (a model that sees the verdict) or `process` (a program
    /// of yours).
    #[schemars(extend("format" = "coordinator"))]
    pub implementation: String,
    /// Name of the entry of `engines` that `llama` asks.
    pub engine: String,
    /// Name of the entry of `pools` that `openai` asks.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// Template of the prompt: the file `coordinator/NAME.j2` below `agents.folder`, or a built-in one: `decide`.
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Template of the instructions that stay the same from turn to turn; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// How many of the committed steps the prompt shows: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Committed steps that `history = "window"` shows.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// Whether `llama` puts the prompt into the chat template of the model's file; otherwise the model continues the text.
    pub chat: bool,
    /// Whether a model is asked about clean steps (V = 0) too; otherwise they proceed.
    pub asks_when_clean: bool,
    /// Options of `adaptive`.
    pub adaptive: AdaptiveOptions,
    /// Options of `process`.
    #[serde(default)]
    pub program: Program,
}

/// Section `agents.coordinator.adaptive`: both thresholds are moved by `gain` times the difference between the observed
/// rate of rejections of a trajectory and `target`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveOptions {
    /// Share of the proposals whose rejection is aimed at: above it the thresholds rise, below it they fall.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target: f64,
    /// Change of the thresholds for a change of the rate from 0 to 1.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub gain: f64,
    /// Proposals at the target's rate that count as made before the first one: the more, the slower the change.
    #[schemars(range(max = 1_000_000.0), extend("exclusiveMinimum" = 0.0))]
    pub smoothing: f64,
    /// Lowest threshold; at most `run.tau_soft`.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub lowest: f64,
    /// Highest threshold; at least `run.tau_hard`.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub highest: f64,
}

/// A value of `history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum HistoryName {
    None,
    Window,
    Full,
}

/// A value of `agents.verifier.verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum VerdictName {
    Report,
    Token,
    Likelihood,
}

/// Section `agents.split`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The role in which runs differ.
    pub role: Role,
    /// The agent that a share of the runs gets in place of the configured one: an implementation or a definition. Empty =
    /// off. A run whose request chooses the role's agent itself does not take part.
    #[schemars(extend("format" = "words"))]
    pub other: String,
    /// Share of the runs that get `other`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}
