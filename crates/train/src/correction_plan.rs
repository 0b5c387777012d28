//! The options of a recipe for corrections.

use serde::{Deserialize, Serialize};

use super::{TrainError, all_hold};

/// How a recipe asks for corrections.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorrectionPlan {
    /// Share of the training samples that are corrections; 0 for none.
    pub share: f64,
    /// Fraction of the budget after which attempts begin. Before, the model is wrong nearly
    /// everywhere.
    pub from: f64,
    /// Optimizer steps between two rounds of attempts; rounded up to whole pools.
    pub every: u64,
    /// Attempts per task in a round: half of them begin at the start of an instance, half on its
    /// reference trace.
    pub attempts: usize,
    /// Maximum number of proposals of an attempt.
    pub proposals: u64,
    /// Fraction of the budget after which training samples that the model gets wrong become
    /// corrections too; 1 for never. They cost nothing, but where several steps are right, the
    /// reference's step does not correct another right one.
    pub misses_from: f64,
}

impl Default for CorrectionPlan {
    fn default() -> Self {
        Self { share: 0.0, from: 0.4, every: 400, attempts: 12, proposals: 40, misses_from: 1.0 }
    }
}

impl CorrectionPlan {
    /// Checks that the fields are in their ranges.
    ///
    /// # Errors
    /// Names the rule that is broken.
    pub fn check(&self) -> Result<(), TrainError> {
        let rules = [
            (
                (0.0..1.0).contains(&self.share),
                "corrections.share is a share of the samples, below 1",
            ),
            ((0.0..=1.0).contains(&self.from), "corrections.from is a fraction of the budget"),
            (
                (0.0..=1.0).contains(&self.misses_from),
                "corrections.misses_from is a fraction of the budget",
            ),
            (
                self.every > 0 && self.attempts > 0 && self.proposals > 0,
                "corrections: every, attempts and proposals must be positive",
            ),
        ];
        all_hold(&rules).map_err(|rule| TrainError::Recipe(rule.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_plans_are_refused_with_the_field() {
        for (plan, field) in [
            (CorrectionPlan { share: 1.0, ..CorrectionPlan::default() }, "corrections.share"),
            (CorrectionPlan { from: -0.1, ..CorrectionPlan::default() }, "corrections.from"),
            (
                CorrectionPlan { misses_from: 1.5, ..CorrectionPlan::default() },
                "corrections.misses_from",
            ),
            (CorrectionPlan { every: 0, ..CorrectionPlan::default() }, "every"),
        ] {
            let message = plan.check().expect_err("refused").to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
