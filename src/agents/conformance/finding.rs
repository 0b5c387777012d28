//! What the suite reports.

use std::fmt;

/// Findings of one rule that are kept; more would say the same.
const PER_RULE_MAX: usize = 3;

/// What every agent must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Every turn ends in time, with an answer or an error.
    Answers,
    /// Nothing panics, whatever the line.
    NoPanic,
    /// An error names the agent, its role first, and says what happened.
    NamedError,
    /// A proposal is one line of at most so many bytes.
    OneLine,
    /// ln p is a number of at most 0, and one for each token where tokens are given.
    Logprob,
    /// A violation is a constraint of the task, or a name that the agent is known to give.
    KnownViolation,
    /// Who finds nothing wrong names no violations.
    ClearVerdict,
    /// The kinds of constraints that a verifier checks never change.
    StableKinds,
    /// The trajectory is as it was.
    Untouched,
    /// An agent whose turns were given up goes on as before.
    UsableAfterDrop,
    /// Two threads may use the agent at the same time.
    Concurrent,
}

/// A rule that an agent breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// The turn at which it shows: task, state and line.
    pub turn: String,
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}: {}", self.rule, self.turn, self.detail)
    }
}

/// Findings so far, the first few of each rule.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub fn note(&mut self, rule: Rule, turn: &str, detail: impl Into<String>) {
        if self.0.iter().filter(|finding| finding.rule == rule).count() < PER_RULE_MAX {
            self.0.push(Finding { rule, turn: turn.to_owned(), detail: detail.into() });
        }
    }

    pub fn add(&mut self, other: Self) {
        other.0.into_iter().for_each(|Finding { rule, turn, detail }| self.note(rule, &turn, detail));
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}
