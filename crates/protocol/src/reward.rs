//! The paper's composite reward (eq. "reward function"): R = α·r_task + β·r_verify + γ·r_eff + λ·r_format.

use serde::{Deserialize, Serialize};

use super::score::Score;

/// α, β, γ and λ. The paper's values are 10, 1, 0.5 and 0.1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardWeights {
    pub task: f64,
    pub verify: f64,
    pub efficiency: f64,
    pub format: f64,
}

/// The inputs of a trajectory's reward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merits {
    /// The trajectory answered, and the verifier found nothing wrong with its last step. The reference answer is never
    /// consulted.
    pub solved: bool,
    /// V of the last judged step.
    pub last_score: Score,
    /// |τ|: committed steps.
    pub steps: u64,
    /// T_max: the longest valid trajectory.
    pub steps_max: u64,
    pub proposals: u64,
    /// Proposals that could be applied.
    pub applicable: u64,
}

/// The reward of a trajectory: its unweighted parts, and their weighted sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// 0 or 1.
    pub task: f64,
    /// −V(s_T).
    pub verify: f64,
    /// max(0, 1 − |τ| / T_max).
    pub efficiency: f64,
    /// Share of proposals that matched the task's grammar and could be applied.
    pub format: f64,
    pub total: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of steps lie far below 2^53")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl RewardWeights {
    pub fn reward(&self, merits: &Merits) -> Reward {
        let task = f64::from(u8::from(merits.solved));
        let verify = -merits.last_score.value();
        let efficiency = (1.0 - ratio(merits.steps, merits.steps_max)).max(0.0);
        let format = ratio(merits.applicable, merits.proposals);
        let total = self.task * task + self.verify * verify + self.efficiency * efficiency + self.format * format;
        Reward { task, verify, efficiency, format, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: RewardWeights = RewardWeights { task: 10.0, verify: 1.0, efficiency: 0.5, format: 0.1 };

    #[test]
    fn the_parts_are_weighted_as_in_the_paper() {
        let good =
            Merits { solved: true, last_score: Score::ZERO, steps: 25, steps_max: 100, proposals: 50, applicable: 40 };
        let reward = PAPER.reward(&good);
        assert!((reward.total - (10.0 + 0.375 + 0.08)).abs() < 1e-12, "{reward:?}");
        let bad = Merits { solved: false, last_score: Score::from_tenths(16), steps: 300, ..good };
        assert!((PAPER.reward(&bad).total - (-1.6 + 0.08)).abs() < 1e-12);
    }
}
