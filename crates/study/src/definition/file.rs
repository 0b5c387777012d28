//! The study file as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// Name, purpose and what holds for all systems.
    pub study: StudySection,
    /// What every system is asked.
    #[serde(default)]
    pub ask: AskSection,
    /// The systems to compare; each is asked the same.
    #[serde(rename = "system", default)]
    #[schemars(length(min = 1))]
    pub systems: Vec<SystemSection>,
    /// Limits of each run.
    #[serde(default)]
    pub budget: BudgetSection,
    /// What the report shows.
    #[serde(default)]
    pub report: ReportSection,
}

/// Name and purpose of the study, and options for all its systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudySection {
    /// Lower-case letters, digits and hyphens; names the records.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9][a-z0-9-]*$"))]
    pub name: String,
    /// What the study is for, in a few sentences.
    #[serde(default)]
    pub description: String,
    /// Kinds of constraints that verifiers may see: `format`, `invariant`, `terminal`,
    /// `transition`. With `transition` the verifier runs the algorithm; such results are never
    /// mixed with others.
    #[serde(default = "kinds")]
    #[schemars(with = "Vec<KindName>")]
    pub kinds: Vec<String>,
    /// True if the study also asks the null executor, `uniform`, as a system of this name: what it
    /// solves, search solves without a model. It is asked the tasks whose choices can be listed. It
    /// is left out if there are none, or if a system has this name or executor.
    #[serde(default = "yes")]
    pub null: bool,
    /// Options of the configuration for all systems, by key, including engines and pools, as in a
    /// system's `set`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

fn yes() -> bool {
    true
}

fn kinds() -> Vec<String> {
    ["format", "invariant", "terminal"].map(str::to_owned).into()
}

/// What every system is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AskSection {
    /// Slugs of tasks, and names of tasks that the configuration or `study.set` defines. Without
    /// tasks and categories: the whole benchmark.
    pub tasks: Vec<String>,
    /// Categories whose tasks are all asked.
    pub categories: Vec<String>,
    /// Slugs of tasks to leave out of the named ones, or of the whole benchmark.
    pub exclude: Vec<String>,
    /// Levels.
    #[schemars(with = "Vec<DifficultyName>")]
    pub difficulties: Vec<String>,
    /// Instances of each task, level and base seed, from index 0. A task of your own has neither
    /// levels nor base seeds; at most this many of its inputs are asked.
    #[schemars(range(min = 1, max = 200))]
    pub instances: u32,
    /// Seeds of instances: each seed gives different ones. Avoid the seeds that a model was trained
    /// on.
    #[schemars(length(min = 1))]
    pub base_seeds: Vec<u64>,
    /// Runs of each instance, with different sampling seeds.
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
    /// Seed from which the sampling seeds of all runs are derived.
    pub sampling_seed: u64,
}

impl Default for AskSection {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            categories: Vec::new(),
            exclude: Vec::new(),
            difficulties: ["easy", "medium", "hard"].map(str::to_owned).into(),
            instances: 200,
            base_seeds: vec![7],
            repeats: 1,
            sampling_seed: 42,
        }
    }
}

/// A system: what it changes in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SystemSection {
    /// Unique within the study; what reports call it.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// A file of outputs made elsewhere, as `bench check` reads them; relative to the study file.
    /// Excludes all keys below.
    #[schemars(with = "String")]
    pub answers: Option<String>,
    /// A single answer to this prompt instead of a run: `baseline` or `structured`. Needs a chat
    /// model: `pool`.
    #[schemars(with = "PromptName")]
    pub prompt: Option<String>,
    /// Components that the structured prompt leaves out: `constraints`, `verification`, `examples`,
    /// `format`.
    pub without: Vec<String>,
    /// Pool of model servers that answers the prompt.
    #[schemars(with = "String")]
    pub pool: Option<String>,
    /// Maximum tokens of the answer to the prompt [default: 4096, the paper's].
    #[schemars(with = "u32", range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Draws samples and selects one as the answer, by a rule that does not know what is right:
    /// `first`, `majority`, `likelihood` (mean log-probability) or, with a prompt, `refine`. A run
    /// is then one trajectory without a verifier, unless `set` says otherwise.
    #[schemars(with = "String")]
    pub select: Option<String>,
    /// True if a run may spend as many tokens as `budget.match_to` did on the instance, for systems
    /// without `select`. Needs `budget.match = "tokens"` and `budget.prompts = "all"` or `"none"`.
    pub matched: bool,
    /// Maximum number of samples; needed unless `budget.match` ends them.
    #[schemars(with = "u32", range(min = 1))]
    pub samples: Option<u32>,
    /// Preset of the configuration.
    #[schemars(with = "String")]
    pub preset: Option<String>,
    /// Search strategy of runs.
    #[schemars(with = "String")]
    pub strategy: Option<String>,
    /// Implementation or definition of the executor.
    #[schemars(with = "String")]
    pub executor: Option<String>,
    /// Implementation or definition of the verifier.
    #[schemars(with = "String")]
    pub verifier: Option<String>,
    /// Implementation or definition of the coordinator.
    #[schemars(with = "String")]
    pub coordinator: Option<String>,
    /// Parameters of its model, for scaling laws.
    #[schemars(with = "u64", range(min = 1))]
    pub parameters: Option<u64>,
    /// What sets it apart from the others; reports compare systems by these factors. `{ G = 8 }` is
    /// a level of a sweep, `without` names the components that an ablation removes, `trained_on`
    /// the categories of a training, each joined by `+`. A system with a prompt gets `prompt` and
    /// `without` automatically.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub factors: BTreeMap<String, toml::Value>,
    /// Any other option of the configuration, by its key: `"run.fanout" = 8`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, toml::Value>,
}

/// Limits of each run. Where one is left out, the configuration's applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSection {
    /// Wall time of a run, in milliseconds.
    #[schemars(with = "u64", range(min = 1))]
    pub wall_ms: Option<u64>,
    /// Tokens of a run, prompts and completions.
    #[schemars(with = "u64", range(min = 1))]
    pub tokens: Option<u64>,
    /// Proposals of a run.
    #[schemars(with = "u64", range(min = 1))]
    pub steps: Option<u64>,
    /// Compares at equal spending: systems with `select` draw samples, and those with `matched`
    /// run, until they have spent as much on an instance as another system did: `tokens` or
    /// `seconds`.
    #[serde(rename = "match")]
    #[schemars(with = "String")]
    pub matched: Option<String>,
    /// The system whose spending it is [default: the first].
    #[schemars(with = "String")]
    pub match_to: Option<String>,
    /// Prompt tokens that count as spent beside the generated ones: `computed` (those that no cache
    /// had), `all` or `none` [default: computed].
    #[schemars(with = "String")]
    pub prompts: Option<String>,
}

/// What the report shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportSection {
    /// Pairs of systems to compare, by name: `[["baseline", "prime"]]`. Default: the first system
    /// with each other one.
    pub pairs: Vec<[String; 2]>,
    /// Tables and figures by the paper's numbers, such as `T2` and `F12`. Default: all.
    pub show: Vec<String>,
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident { $($variant:ident),+ })+) => {$(
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[expect(dead_code, reason = "describes a name in the schema; the check gives better messages than serde")]
        enum $type { $($variant),+ }
    )+};
}

names! {
    /// Kind of constraint.
    KindName { Format, Invariant, Transition, Terminal }
    /// Level.
    DifficultyName { Easy, Medium, Hard }
    /// Style of a prompt.
    PromptName { Baseline, Structured }
}

/// The JSON Schema of a study file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(StudyFile).to_value()
}
