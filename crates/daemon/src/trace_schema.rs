//! The lines of traces and events as the OpenAPI document describes them. `tests/api/clients.py`
//! holds a real trace against it.
#![expect(dead_code, reason = "never constructed")]

use serde_json::Value;
use utoipa::ToSchema;

use prime_protocol::{Approval, Assurance, Located, Opinion, Role, RoleTimes, Speculations, Usage};
use prime_report::{Judge, SentExchange};

/// A line of a trace: an event with its number.
#[derive(ToSchema)]
pub struct TraceRecord {
    /// 0 for `accepted`.
    seq: u64,
    #[schema(inline = false)]
    #[serde(flatten)]
    event: TraceEvent,
}

/// An event of a run.
#[derive(ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TraceEvent {
    /// The run was accepted, with everything that it was accepted with. Only in traces.
    Accepted {
        run: String,
        #[schema(value_type = Object)]
        spec: Value,
    },
    /// The first turns were submitted.
    Started {
        /// What the verdicts from here on rest on, unless a step says otherwise.
        #[schema(value_type = Value, required = false)]
        basis: Value,
        /// Who judges from here on; absent in older records.
        #[schema(nullable = false)]
        judge: Option<Judge>,
    },
    Step(Box<StepEvent>),
    /// A step that would be committed waits for approval. An event `step` follows once that is
    /// decided.
    Waiting(Box<StepEvent>),
    /// A step was chosen by vote.
    Chosen {
        round: u32,
        /// Committed steps before it.
        depth: u64,
        action: String,
        votes: u32,
        /// Votes ahead of the second action.
        lead: u32,
        /// Proposals at this state.
        samples: u32,
        /// Proposals that were discarded.
        discarded: u32,
    },
    /// An attempt at a turn failed; another one follows.
    Mishap {
        round: u32,
        trajectory: u32,
        role: Role,
        failure: String,
        reason: String,
        /// Failed attempts at this turn so far.
        mishaps: u32,
        elapsed_ms: u64,
    },
    TurnFailed {
        round: u32,
        trajectory: u32,
        role: Role,
        failure: String,
        reason: String,
        /// Tokens that the attempts cost; left out where they are none.
        #[schema(nullable = false)]
        usage: Option<Usage>,
        elapsed_ms: u64,
    },
    TrajectoryEnded {
        round: u32,
        trajectory: u32,
        end: String,
        #[schema(value_type = Value, required = false)]
        answer: Value,
        #[schema(nullable = false)]
        failure: Option<String>,
        #[schema(value_type = Object)]
        reward: Value,
    },
    Voted {
        round: u32,
        votes: u32,
        /// 0 to 1.
        agreement: f64,
        #[schema(value_type = Value, required = false)]
        winner: Value,
    },
    /// A limit, a cancellation or a failure ended the run.
    Stopped {
        /// The name of what ended it, or an object with the name and the reason.
        ending: Value,
        elapsed_ms: u64,
    },
    Finished {
        outcome: String,
        verified: bool,
        /// What is promised of the answer, if there is one.
        #[schema(required = false)]
        assurance: Option<Assurance>,
        #[schema(value_type = Value, required = false)]
        answer: Value,
    },
    /// Another process resumed the run.
    Resumed {
        /// How often it was resumed so far.
        resumed: u32,
        /// What the verdicts from here on rest on.
        #[schema(value_type = Value, required = false)]
        basis: Value,
        /// Who judges from here on; absent in older records.
        #[schema(nullable = false)]
        judge: Option<Judge>,
    },
    /// The events before this one are copied from another run.
    Forked {
        run: String,
        /// The last of them. Earlier versions wrote it as a second `seq`.
        parent_seq: Option<u64>,
        /// What the verdicts from here on rest on.
        #[schema(value_type = Value, required = false)]
        basis: Value,
        /// Who judges from here on; absent in older records.
        #[schema(nullable = false)]
        judge: Option<Judge>,
    },
}

/// A judged step.
#[derive(ToSchema)]
pub struct StepEvent {
    round: u32,
    trajectory: u32,
    /// Committed steps below it.
    depth: u64,
    action: String,
    /// What the executor wrote before the action.
    #[schema(nullable = false)]
    derivation: Option<String>,
    /// What the executor's model thought before its answer.
    #[schema(nullable = false)]
    reasoning: Option<String>,
    /// True if the action can be applied in its state.
    applicable: bool,
    /// Σ of the violations' severities.
    #[schema(minimum = 0.0)]
    score: f64,
    /// The names of the violated constraints.
    violations: Vec<String>,
    /// The feedback to the executor.
    #[schema(nullable = false)]
    feedback: Option<String>,
    /// ln p of the verdict, where a model gave it as a single token.
    #[schema(nullable = false)]
    logprob: Option<f64>,
    /// The findings of each verifier of an ensemble.
    #[schema(nullable = false)]
    opinions: Option<Vec<Opinion>>,
    #[schema(nullable = false)]
    needs_review: Option<bool>,
    /// What the verdict rests on, if that is less than what the run's verdicts usually rest on.
    #[schema(value_type = Value, required = false)]
    basis: Value,
    decision: StepDecision,
    /// What the locator found in the steps before, if this step refuted them.
    #[schema(nullable = false)]
    located: Option<Located>,
    /// The number of the approval; only in `waiting`.
    #[schema(nullable = false)]
    approval_number: Option<u32>,
    /// What a reviewer decided about it; only in `step`.
    #[schema(nullable = false)]
    approval: Option<Approval>,
    /// The executor had no line left that was not rejected at this state; `action` is empty.
    #[schema(nullable = false)]
    exhausted: Option<bool>,
    /// Which of several models or servers proposed it.
    #[schema(nullable = false)]
    source: Option<String>,
    /// Tokens of all agents.
    #[schema(nullable = false)]
    usage: Option<Usage>,
    /// The outcome of proposals begun early.
    #[schema(nullable = false)]
    speculations: Option<Speculations>,
    /// Milliseconds that the step waited for each agent; absent where all replied at once.
    #[schema(nullable = false)]
    waited_ms: Option<RoleTimes>,
    /// The tokens of the completion.
    #[schema(nullable = false)]
    tokens: Option<Vec<u32>>,
    /// ln p of each.
    #[schema(nullable = false)]
    logprobs: Option<Vec<f64>>,
    /// What models were sent and what they answered, each prompt without what it shares with the
    /// one before of its role. Only where `journal.prompts` keeps it.
    #[schema(nullable = false)]
    sent: Option<Vec<SentExchange>>,
    /// Milliseconds of run time so far.
    elapsed_ms: u64,
    /// The state in which it was proposed. Only in traces.
    #[schema(value_type = Value, required = false)]
    state: Value,
    /// The system prompt, if there is one. Only in traces with prompts.
    #[schema(nullable = false)]
    system: Option<String>,
    /// What the executor asked its model, before a chat template is applied. Only in traces with
    /// prompts.
    #[schema(nullable = false)]
    prompt: Option<String>,
    /// `derivation` and `action`. Only in traces with prompts.
    #[schema(nullable = false)]
    completion: Option<String>,
    /// `sent`, whole. Only in traces with prompts.
    #[schema(nullable = false)]
    exchanges: Option<Vec<SentExchange>>,
    /// What this step and those after it lack in this trace, and why: the program of the task
    /// failed.
    #[schema(nullable = false)]
    left_out: Option<String>,
    /// The step's share in the trajectory's composite reward. Only in traces.
    #[schema(value_type = Object, required = false)]
    reward: Value,
}

/// What was decided on a step.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepDecision {
    /// It is committed.
    Proceed,
    /// It is proposed again.
    Retry,
    /// It is dropped, and perhaps those before.
    Backtrack,
}
