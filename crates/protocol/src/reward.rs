//! The paper's composite reward (eq. "reward function"): R = α·r_task + β·r_verify + γ·r_eff +
//! λ·r_format, of a trajectory and of each of its steps. Runs and the Python package compute their
//! rewards here.

use serde::{Deserialize, Serialize};

use super::score::Score;

/// α, β, γ and λ. The paper's values are 10, 1, 0.5 and 0.1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardWeights {
    /// α, the weight of r_task.
    pub task: f64,
    /// β, the weight of r_verify.
    pub verify: f64,
    /// γ, the weight of r_eff.
    pub efficiency: f64,
    /// λ, the weight of r_format.
    pub format: f64,
}

/// The inputs of a trajectory's reward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Merits {
    /// The trajectory answered, and the verifier found nothing wrong with its last step. The
    /// reference answer is never consulted.
    pub solved: bool,
    /// V of the last judged step.
    pub last_score: Score,
    /// |τ|: committed steps.
    pub steps: u64,
    /// T_max: the longest valid trajectory.
    pub steps_max: u64,
    /// All proposals.
    pub proposals: u64,
    /// Proposals that could be applied.
    pub applicable: u64,
}

impl Merits {
    /// Share of proposals that could be applied; 0 before the first.
    pub fn share(&self) -> f64 {
        ratio(self.applicable, self.proposals)
    }
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
    /// R: the weighted sum of the parts.
    pub total: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of steps lie far below 2^53")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl RewardWeights {
    /// The paper's values.
    pub const PAPER: Self = Self { task: 10.0, verify: 1.0, efficiency: 0.5, format: 0.1 };

    /// The reward whose parts are these.
    fn weigh(&self, task: f64, verify: f64, efficiency: f64, format: f64) -> Reward {
        let total = self.task * task
            + self.verify * verify
            + self.efficiency * efficiency
            + self.format * format;

        Reward { task, verify, efficiency, format, total }
    }

    /// R(τ) of a trajectory.
    pub fn reward(&self, merits: &Merits) -> Reward {
        let task = f64::from(u8::from(merits.solved));

        let verify = -merits.last_score.value();
        let efficiency = (1.0 - ratio(merits.steps, merits.steps_max)).max(0.0);

        self.weigh(task, verify, efficiency, merits.share())
    }

    /// The reward of a step with this V (see [`StepRewards`]); `share` and `share_before` are those
    /// of applicable proposals with it and before it, and `end` is R(τ) if the trajectory ends with
    /// it.
    pub fn of_step(
        &self,
        score: Score,
        share_before: f64,
        share: f64,
        end: Option<&Reward>,
    ) -> Reward {
        let (task, efficiency) = end.map_or((0.0, 0.0), |end| (end.task, end.efficiency));
        self.weigh(task, -score.value(), efficiency, share - share_before)
    }
}

/// What a verifier found about one proposed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedStep {
    /// The line matched the task's grammar and could be applied.
    pub applicable: bool,
    /// It became the state.
    pub committed: bool,
    /// V of the line.
    pub score: Score,
    /// The trace ends with it, in an answer.
    pub answered: bool,
    /// The trajectory ends with it, in an answer or not.
    pub last: bool,
}

/// The rewards of a trajectory's steps, one after the other.
///
/// The reward of step t has the parts of R. r_task and r_eff count at the last step. r_verify is −V
/// of the step. r_format is the change of the share of applicable proposals. So the rewards of all
/// steps sum to R(τ) − β·Σ V(s_t) over the steps before the last: R(τ) itself where these break
/// nothing. R takes V of the last step alone; here a violation costs at the step that makes it, and
/// a clean step after it pays nothing back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRewards {
    weights: RewardWeights,
    merits: Merits,
}

impl StepRewards {
    /// A trajectory without steps. `steps_max` is T_max.
    pub fn new(weights: RewardWeights, steps_max: u64) -> Self {
        Self { weights, merits: Merits { steps_max, ..Merits::default() } }
    }

    /// Adds a step and returns its reward.
    pub fn add(&mut self, step: &JudgedStep) -> Reward {
        let merits = &mut self.merits;
        let share_before = merits.share();

        merits.proposals += 1;
        merits.applicable += u64::from(step.applicable);
        merits.steps += u64::from(step.committed);
        merits.last_score = step.score;
        merits.solved = step.answered && step.score == Score::ZERO;

        let trajectory = self.trajectory();
        self.weights.of_step(
            step.score,
            share_before,
            trajectory.format,
            step.last.then_some(&trajectory),
        )
    }

    /// The merits of the steps so far.
    pub fn merits(&self) -> &Merits {
        &self.merits
    }

    /// R of the steps so far.
    pub fn trajectory(&self) -> Reward {
        self.weights.reward(&self.merits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_weighted_as_in_the_paper() {
        let good = Merits {
            solved: true,
            last_score: Score::ZERO,
            steps: 25,
            steps_max: 100,
            proposals: 50,
            applicable: 40,
        };

        let reward = RewardWeights::PAPER.reward(&good);
        assert!((reward.total - (10.0 + 0.375 + 0.08)).abs() < 1e-12, "{reward:?}");

        let bad = Merits { solved: false, last_score: Score::from_tenths(16), steps: 300, ..good };
        assert!((RewardWeights::PAPER.reward(&bad).total - (-1.6 + 0.08)).abs() < 1e-12);
    }
    fn step(score: u32, applicable: bool, last: bool) -> JudgedStep {
        let score = Score::from_tenths(score);
        JudgedStep { applicable, committed: applicable, score, answered: last && applicable, last }
    }

    fn totals(steps: &[JudgedStep]) -> (Vec<f64>, f64) {
        let mut rewards = StepRewards::new(RewardWeights::PAPER, 10);
        let of_steps = steps.iter().map(|step| rewards.add(step).total).collect();
        (of_steps, rewards.trajectory().total)
    }

    fn assert_near(found: &[f64], wanted: &[f64]) {
        assert_eq!(found.len(), wanted.len());

        let near = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12);
        assert!(near, "{found:?}, not {wanted:?}");
    }

    #[test]
    fn the_rewards_of_clean_steps_sum_to_the_trajectory_s() {
        let (steps, trajectory) =
            totals(&[step(0, true, false), step(0, true, false), step(0, true, true)]);
        // Of ten steps at most three were taken: 0.5 · 0.7 beside the task's 10.
        assert_near(&steps, &[0.1, 0.0, 10.35]);
        assert_near(&[trajectory], &[10.45]);
    }

    #[test]
    fn a_violation_costs_where_it_is_made() {
        let (steps, trajectory) = totals(&[
            step(6, true, false),
            step(10, false, false),
            step(0, true, false),
            step(0, true, true),
        ]);

        let format = [1.0, 0.5, 2.0 / 3.0, 0.75];
        let wanted = [
            0.1 - 0.6,
            0.1 * (format[1] - format[0]) - 1.0,
            0.1 * (format[2] - format[1]),
            10.0 + 0.35 + 0.1 * (format[3] - format[2]),
        ];

        assert_near(&steps, &wanted);
        assert_near(&[trajectory], &[10.0 + 0.35 + 0.075]);
        assert_near(&[steps.iter().sum::<f64>()], &[trajectory - 1.6]);
    }

    #[test]
    fn a_trace_that_ends_in_a_violation_has_not_solved_its_task() {
        let (steps, trajectory) = totals(&[step(10, true, true)]);
        assert_near(&steps, &[-1.0 + 0.45 + 0.1]);
        assert_near(&[trajectory], &steps);
    }
}
