//! Section `agents`: the implementation of each role and its options. A definition, a file in
//! `agents.folder`, is one of these sections under its own name.
//!
//! As in `sections.rs`, a field's doc comment is its public documentation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adapters::{full, is_full};
use super::engine_names::EngineNames;
use super::program::Program;
use super::thinking::Thinking;
use prime_bench::tasks::CheckedKinds;
use prime_protocol::Role;

/// The schema of the name of a role's agent.
pub(super) fn agent_name(role: &str) -> serde_json::Value {
    serde_json::json!({ "type": "string", "format": role })
}

/// Section `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    /// Folder of role definitions: `executor/NAME.toml`, `verifier/NAME.toml` and
    /// `coordinator/NAME.toml`, each with the options of its role's section, and templates `*.j2`
    /// beside them. A relative path is relative to the working directory. Files override built-in
    /// definitions of the same name.
    pub folder: String,
    /// Proposes the next step.
    pub executor: ExecutorAgent,
    /// Scores the violations of a step.
    pub verifier: VerifierAgent,
    /// Decides between Proceed, Retry and Backtrack.
    pub coordinator: CoordinatorAgent,
    /// An A/B test: a share of the runs uses another agent in one role.
    pub split: Split,
}

/// Section `agents.executor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutorAgent {
    /// What a definition is for.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who proposes steps: the name of an implementation, with the options of this section, or of a
    /// definition. `llama` (a model in a local llama.cpp engine), `openai` (a model behind
    /// OpenAI-compatible servers), `process` (your own program), `escalation` (a small executor,
    /// and a large one on disagreement), `reference` (the algorithm itself; labelled as such in
    /// every output), `scripted` (the algorithm with seeded errors at `error_rate`; for tests),
    /// `uniform` (a draw among the state's valid choices, where these can be listed) or
    /// `replay` (the given `lines` or a `recording`; for tests and for trying out checks).
    #[schemars(extend("format" = "executor"))]
    pub implementation: String,
    /// `llama`: the name of an entry of `engines`; or a list of them, of which the first that has
    /// learnt the task is asked.
    pub engine: EngineNames,
    /// `openai`: the name of an entry of `pools`.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// A LoRA adapter of the model. `llama`: a GGUF file; agents whose engines name the same model
    /// share its weights, each with a KV cache of its own. `openai`: its name at the servers: what
    /// requests name as their model, or with dialect `llama_server` its number or file name in
    /// `/lora-adapters`. Empty = none. A relative path is relative to the working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "words"))]
    pub adapter: String,
    /// How strongly adapters are applied: 1 = as they were trained. `openai`: with dialect
    /// `llama_server` only.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub adapter_scale: f64,
    /// Adapters of single tasks in place of `adapter`, by slug or category, such as
    /// `{ "union-find" = "union-find.gguf" }`; an empty text means none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: BTreeMap<String, String>,
    /// Maximum tokens of a proposal. A longer one is truncated and usually cannot be parsed.
    #[schemars(range(min = 1, max = 32_768))]
    pub max_tokens: u32,
    /// Prompt template: `executor/NAME.j2` in `agents.folder`, or a built-in one: `compact` (one
    /// line; the prompt that the built-in models were trained on) or `step` (the whole task in
    /// words, for instruction-following models). Empty = `compact` for `llama`, `step` for
    /// `openai`.
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Further templates: the trajectories of a round take `prompt` and these in turn.
    pub prompt_variants: Vec<String>,
    /// Template of the system prompt; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// Committed steps in the prompt: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Number of steps for `history = "window"`.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// `llama`: whether to apply the chat template of the model's file; otherwise the model
    /// continues the prompt.
    pub chat_template: bool,
    /// How much a model may think before its answer: `"model"` (as the model and its server do by
    /// themselves), `"off"` (not at all, as far as it can be told) or a number of tokens, which
    /// come on top of those of the answer. A model in a local engine keeps to the number; a server
    /// is told as its `dialect` permits. Thinking is recognised by the model's template and marks,
    /// and a grammar begins after it.
    #[serde(default)]
    pub thinking: Thinking,
    /// Whether the task's grammar constrains the output: at most one free line, then an action.
    /// Otherwise the last line of a free answer is used. A server is constrained if its `dialect`
    /// supports it.
    pub grammar: bool,
    /// With `grammar`: whether lines that were rejected at a state are taken out of its grammar.
    /// Turn it off only to measure its effect.
    pub exclude_rejected: bool,
    /// With `grammar`: when a free line may come before the action: `always`, `once` (only at a
    /// state where no line was rejected yet) or `never`.
    pub derive: DeriveName,
    /// Longest free line in characters; 0 = as long as `max_tokens` allows.
    #[schemars(range(max = 4_096))]
    pub derive_characters: u32,
    /// With `grammar`: when the grammar is the list of the state's valid choices, where they are
    /// finite: `always`, `after_rejections` (with `exclude_rejected`, after two rejected lines that
    /// were no valid choices) or `never`. A model that chooses from such a list can propose nothing
    /// invalid: compare it with a uniform draw.
    pub choices: ChoicesName,
    /// Maximum worked examples in the prompt, with states from the example on the task's page; 0 =
    /// none. The templates `step` and `complete` show them, before the input.
    #[schemars(range(max = 5))]
    pub examples: u32,
    /// Maximum tokens of the worked examples together, counting three bytes as a token: long
    /// examples leave room for fewer.
    #[schemars(range(min = 1, max = 65_536))]
    pub example_tokens: u32,
    /// How `step` and `complete` show input and state: `json`, or `readable` (a field a line, the
    /// places of lists numbered, the rows of grids below each other).
    pub view: ViewName,
    /// What `step` and `complete` say about rejected lines: `verdict` (what the verifier wrote),
    /// `explained` (which part of the line is wrong, and what is possible instead) or `none` (the
    /// lines alone).
    pub feedback: FeedbackName,
    /// Whether `step` lists the task's constraints, which are up to half of its prompt. Without
    /// them, a model learns from `feedback` what a rejected line violates.
    #[serde(default = "listed")]
    pub constraints: bool,
    /// Overrides `run.temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Overrides `run.top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub top_p: Option<f64>,
    /// `scripted`: probability of a wrong proposal.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_rate: f64,
    /// `scripted`: how long a proposal takes, in milliseconds; for measurements and for watching a
    /// run.
    #[schemars(range(max = 3_600_000))]
    pub latency_ms: u64,
    /// `replay`: the lines to propose, in order; starts over after the last.
    #[schemars(length(max = 1_000_000))]
    pub lines: Vec<String>,
    /// `replay`: a trace file, written by `prime-agents run --trace` or `prime-agents runs trace`,
    /// whose proposals are replayed instead of `lines`. Empty = none.
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
    /// The executor to try first: an implementation or a definition.
    #[schemars(extend("format" = "executor"))]
    pub small: String,
    /// The executor to use when the small one's proposals differ.
    #[schemars(extend("format" = "executor"))]
    pub large: String,
    /// Proposals of the small executor per step; if all agree, the line is proposed.
    #[schemars(range(min = 1, max = 64))]
    pub samples: u32,
    /// Rejections in one state after which the large executor is asked directly.
    #[schemars(range(min = 1, max = 1_000))]
    pub after_rejections: u32,
}

/// Section `agents.verifier`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifierAgent {
    /// What a definition is for.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who checks steps: the name of an implementation, with the options of this section, or of a
    /// definition. `rules` (the task's constraints of the chosen `kinds`), `llama` (a model in a
    /// local llama.cpp engine), `openai` (a model behind OpenAI-compatible servers), `reward` (a
    /// reward model behind servers like vLLM), `ensemble` (the median of several), `process` (your
    /// own program), `reference` (exact, by the task's algorithm; for training and evaluation
    /// only), `scripted` (the exact one with seeded errors at `false_accepts` and `false_rejects`;
    /// for studies) or `none` (accepts everything; no answer then counts as verified).
    #[schemars(extend("format" = "verifier"))]
    pub implementation: String,
    /// Kinds of constraints: those that `rules` checks, that the program of `process` is declared
    /// to check, or that a model's `report` is asked about. `sound` takes for each task the
    /// smallest set that lets no wrong answer through; in a few tasks that contains `transition`,
    /// which compares each step with the algorithm's. With a list, an answer is `verified` only
    /// where the list contains the sound set, and `unrefuted` elsewhere. Results name the kinds
    /// that were evaluated; a model evaluates none.
    pub kinds: CheckedKinds,
    /// `llama`: the name of an entry of `engines`; or a list of them, of which the first that has
    /// learnt the task is asked.
    pub engine: EngineNames,
    /// `openai`, `reward`: the name of an entry of `pools`.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// A LoRA adapter of the model. `llama`: a GGUF file; agents whose engines name the same model
    /// share its weights, each with a KV cache of its own. `openai`: its name at the servers: what
    /// requests name as their model, or with dialect `llama_server` its number or file name in
    /// `/lora-adapters`. Empty = none. A relative path is relative to the working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "words"))]
    pub adapter: String,
    /// How strongly adapters are applied: 1 = as they were trained. `openai`: with dialect
    /// `llama_server` only.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub adapter_scale: f64,
    /// Adapters of single tasks in place of `adapter`, by slug or category, such as
    /// `{ "union-find" = "union-find.gguf" }`; an empty text means none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: BTreeMap<String, String>,
    /// A model's verdict format: `report` (the paper's: PASS or FAIL for each constraint, and a
    /// score), `token` (`1` or `0` with its log-probability; for small models trained on this
    /// format), `likelihood` (prompted like an executor, then constrained to the proposed line
    /// after one free line; for models of executors) or `rating` (a digit from 0 to `rating_max`,
    /// of which the expected value over the model's probabilities counts, as in G-Eval; `openai`
    /// only, because it needs the server's `top_logprobs`).
    pub verdict: VerdictName,
    /// `rating`: the best rating, 1 to 9; 1 stands for the answers `0` and `1`.
    #[schemars(range(min = 1, max = 9))]
    pub rating_max: u32,
    /// `reward`: the score from which a step is right. `rating`: the expected rating, divided by
    /// `rating_max`, from which it is.
    #[schemars(range(min = -1_000_000.0, max = 1_000_000.0))]
    pub threshold: f64,
    /// Minimum probability of a token. With `token`, a `1` of lower probability counts as a minor
    /// violation (0 = off); with `likelihood`, a token of lower probability makes the step wrong
    /// (0 = the default of 0.05).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence_min: f64,
    /// Maximum tokens of a report, or of the output of `likelihood`.
    #[schemars(range(min = 1, max = 32_768))]
    pub max_tokens: u32,
    /// Prompt template: `verifier/NAME.j2` in `agents.folder`, or a built-in one: `check` (the
    /// paper's), `token`, `likelihood`, `rating` or `reward` (the context of the step that is
    /// scored). Empty = the one for `verdict`, or for `reward`.
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Template of the system prompt; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// Committed steps in the prompt: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Number of steps for `history = "window"`.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// `llama`: whether to apply the chat template of the model's file; otherwise the model
    /// continues the prompt.
    pub chat_template: bool,
    /// How much a model may think before its answer: `"model"` (as the model and its server do by
    /// themselves), `"off"` (not at all, as far as it can be told) or a number of tokens, which
    /// come on top of those of the answer. A model in a local engine keeps to the number; a server
    /// is told as its `dialect` permits. Thinking is recognised by the model's template and marks,
    /// and a grammar begins after it.
    #[serde(default)]
    pub thinking: Thinking,
    /// Whether a grammar constrains reports. A server is constrained if its `dialect` supports it.
    pub grammar: bool,
    /// `scripted`: the probability that a wrong step is accepted (β of the paper's theorem on
    /// verification errors).
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub false_accepts: f64,
    /// `scripted`: the probability that a right step is rejected (α of that theorem).
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub false_rejects: f64,
    /// The verifier's card, a file that `prime-agents bench verifier --card` writes: results quote
    /// its rates of false accepts. A relative path is relative to the working directory. It must be
    /// the card of this verifier, measured by this version. A definition does not inherit it. Empty
    /// = none.
    #[schemars(extend("format" = "words"))]
    pub card: String,
    /// Options of `ensemble`.
    pub ensemble: Ensemble,
    /// Options of `process`.
    #[serde(default)]
    pub program: Program,
}

impl VerifierAgent {
    /// Makes the section name another verifier, to which the section's card does not belong.
    pub fn choose(&mut self, name: &str) {
        if self.implementation != name {
            name.clone_into(&mut self.implementation);
            self.card.clear();
        }
    }
}

/// Section `agents.verifier.ensemble`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ensemble {
    /// The verifiers that judge each step in parallel: implementations or definitions.
    #[schemars(length(min = 1, max = 16), extend("items" = agent_name("verifier")))]
    pub members: Vec<String>,
    /// Spread of the scores (the paper's δ) above which a step is marked for human review.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub delta: f64,
}

/// Section `agents.coordinator`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorAgent {
    /// What a definition is for.
    #[schemars(extend("format" = "words"))]
    pub description: String,
    /// Who decides: the name of an implementation, with the options of this section, or of a
    /// definition. `threshold` (compares the violation score with `run.tau_soft` and
    /// `run.tau_hard`), `adaptive` (the same, with thresholds that follow the observed rejection
    /// rate), `llama` or `openai` (a model that sees the verdict) or `process` (your own program).
    #[schemars(extend("format" = "coordinator"))]
    pub implementation: String,
    /// `llama`: the name of an entry of `engines`; or a list of them, of which the first that has
    /// learnt the task is asked.
    pub engine: EngineNames,
    /// `openai`: the name of an entry of `pools`.
    #[schemars(extend("format" = "words"))]
    pub pool: String,
    /// A LoRA adapter of the model. `llama`: a GGUF file; agents whose engines name the same model
    /// share its weights, each with a KV cache of its own. `openai`: its name at the servers: what
    /// requests name as their model, or with dialect `llama_server` its number or file name in
    /// `/lora-adapters`. Empty = none. A relative path is relative to the working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "words"))]
    pub adapter: String,
    /// How strongly adapters are applied: 1 = as they were trained. `openai`: with dialect
    /// `llama_server` only.
    #[serde(default = "full", skip_serializing_if = "is_full")]
    #[schemars(range(min = -100.0, max = 100.0))]
    pub adapter_scale: f64,
    /// Adapters of single tasks in place of `adapter`, by slug or category, such as
    /// `{ "union-find" = "union-find.gguf" }`; an empty text means none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: BTreeMap<String, String>,
    /// Prompt template: `coordinator/NAME.j2` in `agents.folder`, or the built-in `decide`.
    #[schemars(extend("format" = "words"))]
    pub prompt: String,
    /// Template of the system prompt; empty = none.
    #[schemars(extend("format" = "words"))]
    pub system: String,
    /// Committed steps in the prompt: `none`, `window` (the last `history_steps`) or `full`.
    pub history: HistoryName,
    /// Number of steps for `history = "window"`.
    #[schemars(range(min = 1, max = 100_000))]
    pub history_steps: u32,
    /// `llama`: whether to apply the chat template of the model's file; otherwise the model
    /// continues the prompt.
    pub chat_template: bool,
    /// How much a model may think before its answer: `"model"` (as the model and its server do by
    /// themselves), `"off"` (not at all, as far as it can be told) or a number of tokens, which
    /// come on top of those of the answer. A model in a local engine keeps to the number; a server
    /// is told as its `dialect` permits. Thinking is recognised by the model's template and marks,
    /// and a grammar begins after it.
    #[serde(default)]
    pub thinking: Thinking,
    /// Whether to ask a model about clean steps (V = 0) too; otherwise they proceed.
    pub ask_on_clean_steps: bool,
    /// Options of `adaptive`.
    pub adaptive: AdaptiveOptions,
    /// Options of `process`.
    #[serde(default)]
    pub program: Program,
}

/// Section `agents.coordinator.adaptive`: shifts both thresholds by `gain` times the difference
/// between a trajectory's observed rejection rate and `target`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveOptions {
    /// Target rejection rate: above it the thresholds rise, below it they fall.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target: f64,
    /// Change of the thresholds when the rejection rate changes from 0 to 1.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub gain: f64,
    /// Number of prior proposals assumed at the target rate; the higher it is, the more slowly the
    /// thresholds change.
    #[schemars(range(max = 1_000_000.0), extend("exclusiveMinimum" = 0.0))]
    pub smoothing: f64,
    /// Lowest threshold; at most `run.tau_soft`.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_min: f64,
    /// Highest threshold; at least `run.tau_hard`.
    #[schemars(range(min = 0.0, max = 1_000.0))]
    pub tau_max: f64,
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

/// A value of `agents.executor.derive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum DeriveName {
    Never,
    Once,
    Always,
}

fn listed() -> bool {
    true
}

/// A value of `agents.executor.choices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum ChoicesName {
    Never,
    AfterRejections,
    Always,
}

/// A value of `agents.executor.view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum ViewName {
    Json,
    Readable,
}

/// A value of `agents.executor.feedback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum FeedbackName {
    None,
    Verdict,
    Explained,
}

/// A value of `agents.verifier.verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum VerdictName {
    Report,
    Token,
    Likelihood,
    Rating,
}

/// Section `agents.split`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The role in which the runs differ.
    pub role: Role,
    /// The alternative agent: an implementation or a definition. Empty = off. Runs whose request
    /// chooses the role's agent do not take part.
    #[schemars(extend("format" = "words"))]
    pub other: String,
    /// Share of the runs that use `other`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}
