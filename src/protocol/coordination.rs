//! The coordinator's threshold policy (eq. 3 of the paper, with its gaps closed; see docs/paper-decisions.md).

use serde::{Deserialize, Serialize};

use super::score::Score;

/// What happens to a judged step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The step is committed.
    Proceed,
    /// The executor is asked again at the same state, with the violations as feedback.
    Retry,
    /// The step is dropped, and its action excluded at this state.
    Backtrack,
}

/// τ_soft and τ_hard, with τ_soft ≤ τ_hard, and how often a step may be asked for again at one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub soft: Score,
    pub hard: Score,
    pub retries_max: u32,
}

impl Thresholds {
    /// V = 0 proceeds; V > τ_hard backtracks at once; anything between is retried up to `retries_max` times, after
    /// which V ≤ τ_soft is tolerated and the rest backtracks.
    pub fn decide(&self, score: Score, retries_here: u32) -> Decision {
        if score == Score::ZERO {
            Decision::Proceed
        } else if score > self.hard {
            Decision::Backtrack
        } else if retries_here < self.retries_max {
            Decision::Retry
        } else if score <= self.soft {
            Decision::Proceed
        } else {
            Decision::Backtrack
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_has_a_decision() {
        let score = |value| Score::from_value(value).expect("a score");
        let thresholds = Thresholds { soft: score(0.3), hard: score(0.8), retries_max: 2 };
        let rows = [
            (0.0, 0, Decision::Proceed),
            (0.2, 0, Decision::Retry),
            (0.3, 1, Decision::Retry),
            (0.3, 2, Decision::Proceed),
            (0.6, 1, Decision::Retry),
            (0.6, 2, Decision::Backtrack),
            (0.8, 2, Decision::Backtrack),
            (0.801, 0, Decision::Backtrack),
            (3.0, 0, Decision::Backtrack),
        ];
        for (value, retries, decision) in rows {
            assert_eq!(thresholds.decide(score(value), retries), decision, "V = {value} after {retries} retries");
        }
    }
}
