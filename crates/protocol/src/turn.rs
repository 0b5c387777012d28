//! A turn: its identity and its result.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::located::Located;
use super::speculations::Speculations;
use super::trajectory::{Usage, Verdict};

/// Identifies a trajectory within its run, so that a late turn can be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnId {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory's place in its round, from 0.
    pub trajectory: u32,
}

/// The result of a turn: the proposed line, its verdict and the decision.
#[derive(Clone, Copy, Debug)]
pub struct TurnOutcome<'a> {
    /// The proposed line.
    pub line: &'a str,
    /// True if the line could be applied.
    pub applicable: bool,
    /// The verdict on it.
    pub verdict: &'a Verdict,
    /// The decision on it.
    pub decision: Decision,
    /// What a locator found in the steps before, if it was asked.
    pub located: Option<&'a Located>,
    /// The executor has no line left that was not rejected at this state. There is no line to
    /// judge; a Backtrack then pops the state as a dead end.
    pub exhausted: bool,
    /// Tokens that the turn's agents spent.
    pub usage: Usage,
    /// What the executor wrote before the line.
    pub derivation: &'a str,
    /// ln p of each token of the proposal; empty if the executor did not report them.
    pub logprobs: &'a [f32],
    /// Proposals that were started early for this turn or the next one.
    pub speculations: Speculations,
}

impl TurnOutcome<'_> {
    /// ln p of the proposal, if the executor reported it.
    pub(super) fn logprob(&self) -> Option<f64> {
        (!self.logprobs.is_empty())
            .then(|| self.logprobs.iter().map(|logprob| f64::from(*logprob)).sum())
    }

    /// Characters of the line and its derivation.
    pub(super) fn characters(&self) -> usize {
        self.line.chars().count() + self.derivation.chars().count()
    }
}
