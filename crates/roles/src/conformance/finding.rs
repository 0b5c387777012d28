//! Rules and findings.

use std::fmt;

/// Findings kept of each rule: an agent that breaks one often breaks it at every turn.
const PER_RULE_MAX: usize = 3;

/// The rules of every agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Every turn ends in time, with an answer or an error.
    Answers,
    /// No input causes a panic.
    NoPanic,
    /// An error names the agent, role first, and gives a reason.
    NamedError,
    /// A proposal is one line of bounded length.
    OneLine,
    /// Log-probabilities are at most 0, and one per token if tokens are given.
    Logprob,
    /// A violation is a constraint of the task, or one of the agent's own names.
    KnownViolation,
    /// A clean verdict names no violations.
    ClearVerdict,
    /// A verifier's kinds of constraints never change.
    StableKinds,
    /// The trajectory is not modified.
    Unmodified,
    /// The agent works after turns were cancelled.
    UsableAfterCancel,
    /// Two threads can use the agent concurrently.
    Concurrent,
}

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that the agent broke.
    pub rule: Rule,
    /// The turn: task, state and line.
    pub turn: String,
    /// What it did.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}: {}", self.rule, self.turn, self.detail)
    }
}

/// The first few findings of each rule.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds a finding, unless there are already enough of its rule.
    pub fn note(&mut self, rule: Rule, turn: &str, detail: impl Into<String>) {
        if self.0.iter().filter(|finding| finding.rule == rule).count() < PER_RULE_MAX {
            self.0.push(Finding { rule, turn: turn.to_owned(), detail: detail.into() });
        }
    }

    /// Adds the findings of another list, within the same limit.
    pub fn add(&mut self, other: Self) {
        other
            .0
            .into_iter()
            .for_each(|Finding { rule, turn, detail }| self.note(rule, &turn, detail));
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}
