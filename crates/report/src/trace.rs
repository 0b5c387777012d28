//! The lines of traces and of the journal, one event each, in the order in which the events
//! happened.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exchanges::SentExchange;
use prime_protocol::{
    Approval, Assurance, Basis, Chosen, Decision, End, Ending, Located, Opinion, Reward, Role,
    RoleTimes, RunInput, Score, Speculations, TurnId, TurnOutcome, Usage, Verdict,
};
use prime_roles::Failure;
use prime_runtime::Event;

/// Who judges the steps after an event, until another event says otherwise. A run that has one
/// verifier states it once, whatever its number of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Judge {
    /// Its name in the configuration.
    pub verifier: String,
    /// The version of this program, which has the rules and the prompts.
    pub version: String,
    /// The engines that it asks, each with the SHA-256 of its model's file, or null where that was
    /// not known, and the models that it asks on servers, with null.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Option<String>>,
}

/// A judged step.
#[derive(Debug, Serialize, Deserialize)]
pub struct StepLine<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in its round, from 0.
    pub trajectory: u32,
    /// Committed steps before this one.
    pub depth: usize,
    /// The action line that was proposed.
    #[serde(borrow)]
    pub action: Cow<'a, str>,
    /// What the executor wrote before the action line.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub derivation: Cow<'a, str>,
    /// What the model thought before its answer.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub reasoning: Cow<'a, str>,
    /// True if the task can carry out the action in this state.
    pub applicable: bool,
    /// The violation score V, 0 or more.
    pub score: Score,
    /// Names of the violated constraints.
    pub violations: Cow<'a, [Cow<'static, str>]>,
    /// The feedback to the executor.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Cow<'a, str>>,
    /// ln p of the verdict, where a model gave it as a single token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f32>,
    /// The findings of each verifier of an ensemble.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub opinions: Cow<'a, [Opinion]>,
    /// True if the verifiers disagree so much that a person should review the step.
    #[serde(default, skip_serializing_if = "is_false")]
    pub needs_review: bool,
    /// What the verdict rests on, if that is less than what the run's verdicts usually rest on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// What the coordinator decided.
    pub decision: Decision,
    /// What the locator found in the steps before, if this step refuted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub located: Option<Cow<'a, Located>>,
    /// Number of the approval that it waits for, in an event `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_number: Option<u32>,
    /// What a reviewer decided about it, if it waited for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Cow<'a, Approval>>,
    /// True if every line that the executor could write was rejected at this state; `action` is
    /// then empty.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exhausted: bool,
    /// The model or server that proposed it, if there are several.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'a, str>>,
    /// Tokens spent by the three agents.
    #[serde(default, skip_serializing_if = "is_none")]
    pub usage: Usage,
    /// The outcome of proposals begun early for this step or after it.
    #[serde(default, skip_serializing_if = "Speculations::is_none")]
    pub speculations: Speculations,
    /// Milliseconds that the step waited for each agent.
    #[serde(default, skip_serializing_if = "is_no_wait")]
    pub waited_ms: RoleTimes,
    /// The tokens of the completion, and ln p of each.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tokens: Cow<'a, [u32]>,
    /// Natural logarithms of the tokens' probabilities, each at most 0.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub logprobs: Cow<'a, [f32]>,
    /// What models were sent for it and what they answered, where the journal keeps that.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sent: Cow<'a, [SentExchange]>,
    /// Milliseconds of run time so far.
    pub elapsed_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_none(usage: &Usage) -> bool {
    *usage == Usage::default()
}

fn is_no_wait(waited: &RoleTimes) -> bool {
    *waited == RoleTimes::default()
}

/// One event, to be written.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TraceLine<'a> {
    /// The first turns were submitted. From here on verdicts rest on `basis`, unless a step says
    /// otherwise.
    Started {
        /// What verdicts rest on.
        basis: Basis,
        /// Left out where nobody recorded the agents.
        #[serde(skip_serializing_if = "Option::is_none")]
        judge: Option<&'a Judge>,
    },
    /// A step was judged and decided.
    Step(StepLine<'a>),
    /// A step is about to be committed, and waits for approval. An event `step` follows once that is
    /// decided.
    Waiting(StepLine<'a>),
    /// An attempt at a turn failed; another one follows.
    Mishap {
        /// The round, from 1.
        round: u32,
        /// The trajectory in its round, from 0.
        trajectory: u32,
        /// The role whose turn failed.
        role: Role,
        /// The kind of failure.
        failure: Failure,
        /// What happened and what to do.
        reason: &'a str,
        /// Failed attempts at this turn so far.
        mishaps: u32,
        /// Milliseconds of run time so far.
        elapsed_ms: u64,
    },
    /// A turn failed for good, and with it its trajectory.
    TurnFailed {
        /// The round, from 1.
        round: u32,
        /// The trajectory in its round, from 0.
        trajectory: u32,
        /// The role whose turn failed.
        role: Role,
        /// The kind of failure.
        failure: Failure,
        /// What happened and what to do.
        reason: &'a str,
        /// Tokens that the attempts cost.
        #[serde(skip_serializing_if = "is_none")]
        usage: Usage,
        /// Milliseconds of run time so far.
        elapsed_ms: u64,
    },
    /// The run was stopped before its rounds were over.
    Stopped {
        /// What ended it.
        ending: &'a Ending,
        /// Milliseconds of run time so far.
        elapsed_ms: u64,
    },
    /// A trajectory ended.
    TrajectoryEnded {
        /// The round, from 1.
        round: u32,
        /// The trajectory in its round, from 0.
        trajectory: u32,
        /// The name of its [`End`].
        end: &'static str,
        /// Its answer; left out if it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<&'a Value>,
        /// Why it failed; left out unless an agent failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a str>,
        /// Its reward, in parts.
        reward: Reward,
    },
    /// A step was chosen by vote.
    Chosen {
        /// The round, from 1.
        round: u32,
        /// The step, with its votes.
        #[serde(flatten)]
        chosen: &'a Chosen,
    },
    /// The answers of a round were counted.
    Voted {
        /// The round, from 1.
        round: u32,
        /// Votes of the winner.
        votes: u32,
        /// Share of the winner's votes in the round's trajectories, 0 to 1.
        agreement: f64,
        /// The answer with most votes; left out without votes.
        #[serde(skip_serializing_if = "Option::is_none")]
        winner: Option<&'a Value>,
    },
    /// The run ended.
    Finished {
        /// What ended it, as in [`RunResult::outcome`](super::RunResult::outcome).
        outcome: &'static str,
        /// True if the answer is promised to be right.
        verified: bool,
        /// What is promised of the answer; left out without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        assurance: Option<Assurance>,
        /// The winner of the vote; left out if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<&'a Value>,
    },
    /// Another process resumed the run, for the `resumed`th time.
    Resumed {
        /// How often the run has been resumed, this time included.
        resumed: u32,
        /// What verdicts rest on from here.
        basis: Basis,
        /// Who judges from here.
        judge: &'a Judge,
    },
    /// The events before are copied from another run.
    Forked {
        /// The id of the run that they are copied from.
        run: &'a str,
        /// The number of its last event that was copied. Earlier versions wrote it as `seq`, beside
        /// the number of this event.
        parent_seq: u64,
        /// What verdicts rest on from here.
        basis: Basis,
        /// Who judges from here.
        judge: &'a Judge,
    },
}

impl TraceLine<'_> {
    /// Appends its JSON and a line feed: what the journal keeps of an event.
    pub fn write(&self, text: &mut Vec<u8>) {
        serde_json::to_writer(&mut *text, self).expect("invariant: events serialise");
        text.push(b'\n');
    }
}

impl<'a> TraceLine<'a> {
    /// The line of an event of the runtime. It has no judge and no exchanges: their owner adds
    /// them.
    pub fn of(event: &'a Event<'a>) -> Self {
        match event {
            Event::Started { basis } => Self::Started { basis: *basis, judge: None },
            Event::Step {
                id,
                elapsed_ms,
                depth,
                proposal,
                is_applicable,
                verdict,
                decision,
                located,
                approval,
                usage,
                speculations,
                waited,
                ..
            } => Self::Step(StepLine {
                round: id.round,
                trajectory: id.trajectory,
                depth: *depth,
                action: proposal.line.as_str().into(),
                derivation: proposal.derivation.as_str().into(),
                reasoning: proposal.reasoning.as_str().into(),
                applicable: *is_applicable,
                score: verdict.score,
                violations: verdict.violations.as_slice().into(),
                feedback: verdict.feedback.as_deref().map(Cow::Borrowed),
                logprob: verdict.logprob,
                opinions: verdict.opinions.as_slice().into(),
                needs_review: verdict.needs_review,
                basis: verdict.basis,
                decision: *decision,
                located: located.map(Cow::Borrowed),
                approval_number: None,
                approval: approval.map(Cow::Borrowed),
                exhausted: proposal.is_exhausted,
                usage: *usage,
                speculations: *speculations,
                waited_ms: *waited,
                source: proposal.source.as_deref().map(Cow::Borrowed),
                tokens: proposal.tokens.as_slice().into(),
                logprobs: proposal.logprobs.as_slice().into(),
                sent: Cow::Borrowed(&[]),
                elapsed_ms: *elapsed_ms,
            }),
            Event::Waiting { number, step } => match Self::of(step) {
                Self::Step(step) => {
                    Self::Waiting(StepLine { approval_number: Some(*number), ..step })
                }
                other => other,
            },
            Event::Mishap { id, elapsed_ms, role, error, mishaps } => Self::Mishap {
                round: id.round,
                trajectory: id.trajectory,
                role: *role,
                failure: error.failure,
                reason: &error.reason,
                mishaps: *mishaps,
                elapsed_ms: *elapsed_ms,
            },
            Event::TurnFailed { id, elapsed_ms, role, failure, reason, usage } => {
                Self::TurnFailed {
                    round: id.round,
                    trajectory: id.trajectory,
                    role: *role,
                    failure: *failure,
                    reason,
                    usage: *usage,
                    elapsed_ms: *elapsed_ms,
                }
            }
            Event::Stopped { ending, elapsed_ms } => {
                Self::Stopped { ending, elapsed_ms: *elapsed_ms }
            }
            Event::TrajectoryEnded { id, end, reward } => Self::TrajectoryEnded {
                round: id.round,
                trajectory: id.trajectory,
                end: end.name(),
                answer: if let End::Answered(answer) = end { Some(answer) } else { None },
                failure: if let End::Failed(reason) = end { Some(reason) } else { None },
                reward: **reward,
            },
            Event::Chosen { round, chosen } => Self::Chosen { round: *round, chosen },
            Event::Voted { round, winner, agreement } => Self::Voted {
                round: *round,
                votes: winner.map_or(0, |winner| winner.votes),
                agreement: *agreement,
                winner: winner.map(|winner| &winner.answer),
            },
            Event::Finished(outcome) => Self::Finished {
                outcome: outcome.ending.name(),
                verified: outcome.is_verified(),
                assurance: outcome.assurance,
                answer: outcome.answer.as_ref(),
            },
        }
    }
}

/// An event, read back. Only events that change the run have variants; the others follow from them.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RecordedEvent<'a> {
    /// A step was judged and decided.
    #[serde(borrow)]
    Step(StepLine<'a>),
    /// A step waits for approval.
    #[serde(borrow)]
    Waiting(StepLine<'a>),
    /// A turn failed for good, and with it its trajectory.
    TurnFailed {
        /// The round, from 1.
        round: u32,
        /// The trajectory in its round, from 0.
        trajectory: u32,
        /// What happened and what to do.
        reason: String,
        /// Tokens that the attempts cost.
        #[serde(default)]
        usage: Usage,
        /// Milliseconds of run time so far.
        elapsed_ms: u64,
    },
    /// The run was stopped before its rounds were over.
    Stopped {
        /// What ended it.
        ending: Ending,
        /// Milliseconds of run time so far.
        elapsed_ms: u64,
    },
    /// The first turns were submitted.
    Started {
        /// What verdicts rest on; `None` in records from before bases.
        basis: Option<Basis>,
    },
    /// Another process resumed the run.
    Resumed {
        /// What verdicts rest on from here; `None` in records from before bases.
        basis: Option<Basis>,
    },
    /// The events before are copied from another run.
    Forked {
        /// What verdicts rest on from here; `None` in records from before bases.
        basis: Option<Basis>,
    },
    /// Any other event, which follows from the steps.
    #[serde(other)]
    Other,
}

impl<'a> RecordedEvent<'a> {
    /// Parses a line without its newline.
    ///
    /// # Errors
    /// When it is not an event.
    pub fn read(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        // Nearly all lines are steps; parsing them directly takes a third of the time.
        if line.starts_with(br#"{"event":"step","#) {
            return serde_json::from_slice(line).map(Self::Step);
        }
        serde_json::from_slice(line)
    }
}

impl StepLine<'_> {
    /// The executor's text: what it derived, then the action.
    pub fn completion(&self) -> Cow<'_, str> {
        if self.derivation.is_empty() {
            return self.action.as_ref().into();
        }
        format!("{}\n{}", self.derivation, self.action).into()
    }

    /// The trajectory that the step belongs to.
    pub fn id(&self) -> TurnId {
        TurnId { round: self.round, trajectory: self.trajectory }
    }

    /// The verdict, with empty usage: the step's own field sums the tokens of its agents.
    pub fn verdict(&self) -> Verdict {
        Verdict {
            score: self.score,
            violations: self.violations.to_vec(),
            feedback: self.feedback.as_deref().map(str::to_owned),
            logprob: self.logprob,
            opinions: self.opinions.to_vec(),
            needs_review: self.needs_review,
            basis: self.basis,
            // The sum of the three agents' usage is the step's own field.
            usage: Usage::default(),
        }
    }

    /// The step as an input of the run, with its verdict.
    pub fn happened<'b>(&'b self, verdict: &'b Verdict) -> RunInput<'b> {
        let outcome = TurnOutcome {
            line: &self.action,
            applicable: self.applicable,
            verdict,
            decision: self.decision,
            located: self.located.as_deref(),
            exhausted: self.exhausted,
            usage: self.usage,
            derivation: &self.derivation,
            logprobs: &self.logprobs,
            speculations: self.speculations,
        };
        RunInput::Decided { id: self.id(), outcome }
    }
}
