//! The lines of a trace file: every judged step of a run, in the order in which they were decided.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::protocol::{Decision, End, Reward, Score};
use crate::runtime::Event;

/// One line of a trace file.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TraceLine<'a> {
    Step {
        round: u32,
        trajectory: u32,
        /// Committed steps below this one.
        depth: usize,
        action: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        derivation: &'a str,
        applicable: bool,
        score: Score,
        violations: &'a [Cow<'static, str>],
        decision: Decision,
        #[serde(skip_serializing_if = "<[f32]>::is_empty")]
        logprobs: &'a [f32],
    },
    TrajectoryEnded {
        round: u32,
        trajectory: u32,
        end: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a str>,
        reward: Reward,
    },
    Voted {
        round: u32,
        votes: u32,
        agreement: f64,
    },
    Finished {
        outcome: &'static str,
        verified: bool,
    },
}

impl<'a> TraceLine<'a> {
    pub fn of(event: &'a Event<'a>) -> Self {
        match event {
            Event::Step { id, depth, proposal, is_applicable, verdict, decision } => Self::Step {
                round: id.round,
                trajectory: id.trajectory,
                depth: *depth,
                action: &proposal.line,
                derivation: &proposal.derivation,
                applicable: *is_applicable,
                score: verdict.score,
                violations: &verdict.violations,
                decision: *decision,
                logprobs: &proposal.logprobs,
            },
            Event::TrajectoryEnded { id, end, reward } => Self::TrajectoryEnded {
                round: id.round,
                trajectory: id.trajectory,
                end: end.name(),
                answer: if let End::Answered(answer) = end { Some(answer) } else { None },
                failure: if let End::Failed(reason) = end { Some(reason) } else { None },
                reward: **reward,
            },
            Event::Voted { round, winner, agreement } => {
                Self::Voted { round: *round, votes: winner.map_or(0, |winner| winner.votes), agreement: *agreement }
            }
            Event::Finished(outcome) => Self::Finished { outcome: outcome.ending.name(), verified: outcome.verified },
        }
    }
}
