//! How a trajectory ends, and what follows a decision.

use serde_json::Value;

/// How a trajectory ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Its trace reached an end.
    Answered(Value),
    /// Nothing is left to try at its first state: the search is complete and has no answer.
    Exhausted,
    /// Its first state used up its attempts, or `stuck_after` proposals brought no progress.
    Stuck,
    /// It made `pops_max` pops.
    PopsSpent,
    /// It reached T_max, the length of the longest valid trace, without an answer.
    StepsSpent,
    /// An agent failed for good, for this reason.
    Failed(String),
}

impl End {
    /// The name that traces carry.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Exhausted => "exhausted",
            Self::Stuck => "stuck",
            Self::PopsSpent => "pops_spent",
            Self::StepsSpent => "steps_spent",
            Self::Failed(_) => "failed",
        }
    }
}

/// What follows a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The executor proposes the next step.
    Propose,
    /// The trajectory has ended.
    Ended(End),
}
