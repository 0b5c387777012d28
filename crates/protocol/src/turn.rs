//! A turn: its identity, and what came of it.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::speculations::Speculations;
use super::trajectory::{Usage, Verdict};

/// Identifies a trajectory within its run, so that a late turn can be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnId {
    pub round: u32,
    pub trajectory: u32,
}

/// The result of a turn: the proposed line, its verdict and the decision.
#[derive(Clone, Copy, Debug)]
pub struct TurnOutcome<'a> {
    pub line: &'a str,
    /// The line could be applied.
    pub applicable: bool,
    pub verdict: &'a Verdict,
    pub decision: Decision,
    /// The executor has no line left that was not rejected at this state. There is no line to judge; a Backtrack then pops
    /// the state as a dead end.
    pub exhausted: bool,
    pub usage: Usage,
    /// ln p of the proposal, if the executor reported it.
    pub logprob: Option<f64>,
    /// Characters of the line and its derivation.
    pub characters: usize,
    /// Proposals that were started early for this turn or the next one.
    pub speculations: Speculations,
}

impl TurnOutcome<'_> {
    /// The log-probability and the characters of a proposal.
    #[inline]
    pub fn measure(line: &str, derivation: &str, logprobs: &[f32]) -> (Option<f64>, usize) {
        let logprob = (!logprobs.is_empty()).then(|| logprobs.iter().map(|logprob| f64::from(*logprob)).sum());
        (logprob, line.chars().count() + derivation.chars().count())
    }
}
