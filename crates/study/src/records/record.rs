//! One run as a row.

use prime_bench::judge::{Judgement, StageResult};
use prime_bench::tasks::inputs::digest;
use prime_bench::tasks::{Kind as ConstraintKind, Kinds, Problem, Severity, Spec};
use prime_protocol::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::columns::{Column, Field, Kind, Values, field};

/// The `difficulty` of tasks whose inputs are given: they have no levels.
pub const GIVEN: &str = "given";

/// Version of the columns; it changes when the name or meaning of a column does.
pub const SCHEMA: u32 = 1;

/// Whether a run says anything about its system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ended: its answer, or the lack of one, counts.
    Measured,
    /// It could not be completed, for example because a server was lost. It never counts as wrong.
    NotMeasured,
}

impl Status {
    /// The value of the column `status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::NotMeasured => "not_measured",
        }
    }
}

/// Result of one stage of judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageOutcome {
    /// The output met the stage's requirements.
    Passed,
    /// The output did not meet the stage's requirements.
    Failed,
    /// There was no trace to judge.
    NotJudged,
}

impl StageOutcome {
    /// The value of the stage's column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotJudged => "not_judged",
        }
    }
}

impl From<StageResult> for StageOutcome {
    fn from(result: StageResult) -> Self {
        match result {
            StageResult::Passed => Self::Passed,
            StageResult::Failed => Self::Failed,
            StageResult::NotJudged => Self::NotJudged,
        }
    }
}

field!(Status, Text, value => value.name().to_owned());
field!(StageOutcome, Text, value => value.name().to_owned());

macro_rules! record {
    ($($(#[doc = $meaning:literal])+ $name:ident $(, once $before:literal)?: $type:ty,)+) => {
        /// One run. The fields are the columns of JSON Lines and Parquet.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Record {
            $($(#[doc = $meaning])+ $(#[serde(alias = $before)])? pub $name: $type,)+
        }

        /// All columns, in order.
        pub const COLUMNS: &[Column] = &[$(Column {
            name: stringify!($name),
            kind: <$type as Field>::KIND,
            is_optional: <$type as Field>::IS_OPTIONAL,
            meaning: concat!($($meaning),+),
        },)+];

        /// The values of each column.
        pub(super) fn columns_of(records: &[Record]) -> Vec<Values> {
            vec![$({
                let mut values = Values::new(<$type as Field>::KIND);
                records.iter().for_each(|record| record.$name.push(&mut values));
                values
            },)+]
        }
    };
}

record! {
    /// Version of these columns.
    schema: u32,
    /// Name of the study.
    study: String,
    /// Name of the system within the study.
    system: String,
    /// Place of the system in the study file, from 0: reports show systems in this order. Null in
    /// records of earlier versions.
    system_place: Option<u32>,
    /// Slug of the task.
    task: String,
    /// Category of the task.
    category: String,
    /// `easy`, `medium` or `hard`; `given` for the inputs of a task of your own.
    difficulty: String,
    /// Instance within task and difficulty, from 0; for a task of your own, the place of its input
    /// in the file.
    index: u32,
    /// Base seed of the instance: another one gives another instance.
    base_seed: u64,
    /// Sampling seed: another one is a repeat of the same instance.
    sampling_seed: u64,
    /// Repeat of the instance, from 0.
    repeat: u32,
    /// Size of the input: its `n`, such as the side of a chess board, else the length of its
    /// longest list.
    size: Option<u64>,
    /// Digest of task and input, 16 hexadecimal digits: equal for instances with the same input,
    /// which count once for an interval. Null in records of earlier versions, whose instances all
    /// count.
    input_digest: Option<String>,
    /// SHA-256 of a task of your own: of what it declares, its module or its command, with the
    /// files that the command names. Null for the benchmark's tasks. Records of one task by
    /// different programs are never read together.
    task_digest: Option<String>,
    /// `measured` or `not_measured`: only in measured runs do `right` and all other results mean
    /// anything.
    status: Status,
    /// The answer as JSON text.
    answer: Option<String>,
    /// The benchmark accepts the answer.
    right: bool,
    /// The system's verifier accepted every step of the answer's trajectory; `verified` in records
    /// of earlier versions. Whether that is a proof depends on the kinds that it saw.
    accepted, once "verified": bool,
    /// Implementation or definition of the verifier; `none` if there is none.
    verifier: String,
    /// Kinds of constraints that the verifier saw, with commas: `format,invariant,terminal`.
    /// Results whose kinds are sound for the task, those whose
    /// kinds are not, and those that saw `transition` are never in one table.
    checked_kinds: String,
    /// These kinds are sound for the task, in the version that made the run: an accepted answer is
    /// right. Null in records of earlier versions, which did not record it.
    sound: Option<bool>,
    /// Stage 1: actions or an answer could be extracted; `passed`, `failed` or `not_judged`.
    format: StageOutcome,
    /// Stage 2: the answer has the task's fields, and every line is an action.
    syntax: StageOutcome,
    /// Stage 3: every step satisfies the constraints, and the trace ends.
    semantic: StageOutcome,
    /// Stage 4: the answer is right.
    result: StageOutcome,
    /// Share of reference states that the trace reaches at the same step, 0 to 1.
    partial_credit: Option<f64>,
    /// Steps over the reference's steps; below 1 is possible where a task is searched.
    efficiency: Option<f64>,
    /// Steps of the reference trace.
    reference_steps: u64,
    /// Steps before the first wrong one.
    first_error_step: Option<u64>,
    /// Position of the first error in per cent of the reference trace, 0 to 100.
    first_error_pct: Option<f64>,
    /// One of the nine types, such as `carryover`.
    first_error_type: Option<String>,
    /// Worst broken constraint: `critical`, `major` or `minor`; `critical` if the answer is wrong
    /// and none was broken.
    severity: Option<String>,
    /// For sorts: the answer is a permutation of the input.
    faithful: Option<bool>,
    /// Committed steps of the answer's trajectory.
    steps: u64,
    /// Proposed steps of all trajectories.
    proposals: u64,
    /// Proposals that were retries.
    retries: u64,
    /// Steps that were retried once or more.
    steps_retried: Option<u64>,
    /// Decisions to backtrack.
    backtracks: u64,
    /// JSON object: how many proposed lines each constraint refused, over all trajectories; the 32
    /// that refused most. A line that breaks several counts for each. Null in records of earlier
    /// versions and of outputs made elsewhere.
    refused: Option<String>,
    /// States that were popped off a stack.
    pops: u64,
    /// Rounds of voting.
    rounds: u32,
    /// Trajectories of all rounds.
    trajectories: u32,
    /// Votes of the winning answer.
    votes: Option<u32>,
    /// Share of the last round's trajectories that voted for the winner, 0 to 1.
    agreement: Option<f64>,
    /// Tokens of all prompts.
    prompt_tokens: u64,
    /// Generated tokens.
    completion_tokens: u64,
    /// Tokens of `prompt_tokens` that a model took from its cache, as the engine or the server
    /// reports. Null in records of earlier versions.
    cached_tokens: Option<u64>,
    /// What these tokens cost, in the currency of the configured prices. Null where no model has a
    /// price, and in records of earlier versions.
    cost: Option<f64>,
    /// Samples that a system with `select` drew.
    samples: Option<u32>,
    /// Budget of such a system under `budget.match`: what the other system spent, in tokens or
    /// seconds.
    matched_budget: Option<f64>,
    /// JSON list of pairs `[tokens, right]`: whether the answer was right that the system would
    /// have given from that many spent tokens on. Before the first pair it had no answer. Null in
    /// records of earlier versions and of outputs made elsewhere.
    curve: Option<String>,
    /// Wall time of the run, in milliseconds, from the moment at which it had its places at the
    /// servers.
    wall_ms: f64,
    /// Milliseconds that the run waited for these places.
    queued_ms: Option<f64>,
    /// Milliseconds in the executor, summed over trajectories.
    executor_ms: Option<f64>,
    /// Milliseconds in the verifier, summed over trajectories.
    verifier_ms: Option<f64>,
    /// Milliseconds in the coordinator, summed over trajectories.
    coordinator_ms: Option<f64>,
    /// Share of the time between submission and outcome during which no agent worked, 0 to 1.
    coordination_share: Option<f64>,
    /// Why the run has no answer, or was not measured.
    failure: Option<String>,
    /// Version of prime-agents.
    version: String,
    /// Commit that the program was built from, if known.
    commit: Option<String>,
    /// Hash of the system's configuration.
    config_hash: String,
    /// What sets the system apart from others of its study: `name=value`, with commas, such as
    /// `G=8` or `without=voting`.
    factors: Option<String>,
    /// SHA-256 of the model files, each after the name of its engine, or the served model's name.
    model_digest: Option<String>,
    /// Number of parameters of the model, as the study file gives it.
    parameters: Option<u64>,
    /// Processor and cores.
    machine: String,
    /// Start of the run, RFC 3339 in UTC.
    started_at: String,
}

/// What makes a run unique within a study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Name of the system.
    pub system: String,
    /// Slug of the task.
    pub task: String,
    /// Level, or [`GIVEN`].
    pub difficulty: String,
    /// Index of the instance, from 0.
    pub index: u32,
    /// Base seed of the instance.
    pub base_seed: u64,
    /// Number of the repeat, from 0.
    pub repeat: u32,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { system, task, difficulty, index, base_seed, repeat } = self;
        write!(
            f,
            "{system} on {task}/{difficulty}/{index:03}, base seed {base_seed}, repeat {repeat}"
        )
    }
}

/// What made the runs of a system; the same for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Version of prime-agents.
    pub version: String,
    /// Commit that the program was built from, if known.
    pub commit: Option<String>,
    /// Hash of the system's configuration.
    pub config_hash: String,
    /// SHA-256 of the model files after the names of their engines, or the served model's name;
    /// `None` for systems without a model.
    pub model_digest: Option<String>,
    /// Processor and cores.
    pub machine: String,
    /// Implementation or definition of the verifier; `none` without one.
    pub verifier: String,
    /// Kinds of constraints that the verifier sees.
    pub kinds: Vec<ConstraintKind>,
    /// Digests of the user's own tasks, by name.
    pub task_digests: BTreeMap<String, String>,
    /// Place of the system in the study file, from 0.
    pub system_place: Option<u32>,
}

impl Record {
    /// A record of a run of which only the key is known so far.
    pub fn not_measured(key: Key, spec: &Spec, provenance: &Provenance) -> Self {
        let Key { system, task, difficulty, index, base_seed, repeat } = key;
        let provenance = provenance.clone();
        let kinds: Kinds = provenance.kinds.iter().copied().collect();

        let mut record = Self {
            schema: SCHEMA,
            study: String::new(),
            system,
            system_place: provenance.system_place,
            task,
            category: spec.category.name().to_owned(),
            difficulty,
            index,
            base_seed,
            sampling_seed: 0,
            repeat,
            size: None,
            input_digest: None,
            task_digest: None,
            status: Status::NotMeasured,
            answer: None,
            right: false,
            accepted: false,
            verifier: provenance.verifier,
            checked_kinds: String::new(),
            sound: None,
            format: StageOutcome::NotJudged,
            syntax: StageOutcome::NotJudged,
            semantic: StageOutcome::NotJudged,
            result: StageOutcome::NotJudged,
            partial_credit: None,
            efficiency: None,
            reference_steps: 0,
            first_error_step: None,
            first_error_pct: None,
            first_error_type: None,
            severity: None,
            faithful: None,
            steps: 0,
            proposals: 0,
            retries: 0,
            steps_retried: None,
            backtracks: 0,
            refused: None,
            pops: 0,
            rounds: 0,
            trajectories: 0,
            votes: None,
            agreement: None,
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: None,
            cost: None,
            samples: None,
            matched_budget: None,
            curve: None,
            wall_ms: 0.0,
            queued_ms: None,
            executor_ms: None,
            verifier_ms: None,
            coordinator_ms: None,
            coordination_share: None,
            failure: None,
            version: provenance.version,
            commit: provenance.commit,
            config_hash: provenance.config_hash,
            factors: None,
            model_digest: provenance.model_digest,
            parameters: None,
            machine: provenance.machine,
            started_at: String::new(),
        };
        record.set_kinds(kinds, spec.sound);
        record
    }

    /// The key of its run.
    pub fn key(&self) -> Key {
        Key {
            system: self.system.clone(),
            task: self.task.clone(),
            difficulty: self.difficulty.clone(),
            index: self.index,
            base_seed: self.base_seed,
            repeat: self.repeat,
        }
    }

    /// Its tokens.
    pub fn usage(&self) -> Usage {
        Usage {
            prompt: self.prompt_tokens,
            completion: self.completion_tokens,
            cached: self.cached_tokens.unwrap_or_default(),
            ..Usage::default()
        }
    }

    /// True if the run counts; see [`Status`].
    pub fn is_measured(&self) -> bool {
        self.status == Status::Measured
    }

    /// True if the task is one that a user defined.
    pub fn is_own(&self) -> bool {
        self.task_digest.is_some()
    }

    /// Records the kinds of constraints that the verifier saw, and whether they are sound for the
    /// task, as those of `sound` are.
    pub fn set_kinds(&mut self, kinds: Kinds, sound: Kinds) {
        self.checked_kinds = kinds.iter().map(ConstraintKind::name).collect::<Vec<_>>().join(",");
        // No verifier can accept a line that the machine refuses.
        let kinds = kinds.union(Kinds::from_iter([ConstraintKind::Format]));
        self.sound = Some(kinds.intersection(sound) == sound);
    }

    /// Copies what the report needs of the instance, so that reports never generate it again.
    pub fn set_problem(&mut self, problem: &dyn Problem) {
        self.size = size_of(&problem.input());
        self.input_digest = Some(format!("{:016x}", digest(problem)));
    }

    /// Copies the findings of the benchmark's judge.
    pub fn set_judgement(&mut self, judgement: &Judgement) {
        self.right = judgement.correct();
        self.format = judgement.format.into();
        self.syntax = judgement.syntax.into();
        self.semantic = judgement.semantic.into();
        self.result = judgement.result.into();
        self.partial_credit = judgement.partial_credit;
        self.efficiency = judgement.efficiency;
        self.reference_steps = judgement.reference_steps;
        self.faithful = judgement.faithful;

        let first = judgement.first_error.as_ref();
        self.first_error_step = first.map(|error| error.step);
        self.first_error_pct = first.map(|error| error.percentile);
        self.first_error_type = first.map(|error| error.error.name().to_owned());

        let worst = judgement
            .violations
            .iter()
            .map(|broken| broken.severity)
            .max_by_key(|severity| severity.tenths());
        // A wrong answer without a broken constraint counts as critical.
        let worst = worst.or((!self.right).then_some(Severity::Critical));
        self.set_severity(worst);
    }

    /// Records the worst broken constraint.
    pub fn set_severity(&mut self, worst: Option<Severity>) {
        self.severity = worst.map(|severity| severity_name(severity).to_owned());
    }
}

/// The size of an input, if it has one: its `n`, else the length of its longest list.
fn size_of(input: &Value) -> Option<u64> {
    let lists = || {
        input.as_object().into_iter().flat_map(|fields| fields.values()).filter_map(Value::as_array)
    };
    input["n"].as_u64().or_else(|| lists().map(|list| list.len() as u64).max())
}

/// All severities, worst first.
pub(crate) const SEVERITIES: [Severity; 3] = [Severity::Critical, Severity::Major, Severity::Minor];

pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Major => "major",
        Severity::Minor => "minor",
    }
}
