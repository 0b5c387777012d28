//! The parameters of a run.

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::budget::Budget;
use super::cost::Cost;
use super::rejection::StuckAt;
use super::reward::RewardWeights;
use super::strategy::{Strategy, VoteRule};
use super::trajectory::Limits;
use prime_bench::tasks::Kinds;

/// Most trajectories side by side, and most rounds, of any configuration.
const SIDE_BY_SIDE_MAX: u32 = 256;
const ROUNDS_MAX: u32 = 100;

/// Everything that is fixed when a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// How the run searches.
    pub strategy: Strategy,
    /// How a round's answers vote.
    pub vote: VoteRule,
    /// End a round as soon as its winner cannot change.
    pub early_stop: bool,
    /// End the run after the first round whose winner is verified with the required agreement.
    /// Otherwise hold all rounds.
    pub adaptive_rounds: bool,
    /// Trajectories per round (the paper's G).
    pub fanout: u32,
    /// Upper limit on rounds (the paper's K).
    pub max_rounds: u32,
    /// Required share of a round's trajectories that agree on the winner, 0 to 1.
    pub confidence: f64,
    /// Limits of each trajectory.
    pub limits: Limits,
    /// Limits of the whole run.
    pub budget: Budget,
    /// Weights of the reward's parts.
    pub weights: RewardWeights,
    /// What the verifier's verdicts on this problem rest on, unless a verdict says otherwise.
    #[serde(default)]
    pub basis: Basis,
    /// True if a locator is asked for the fault of a refuted trajectory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locates: bool,
    /// What an earlier run of the same request had rejected, state by state: this run does not
    /// propose it again there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learnt: Vec<StuckAt>,
    /// Start a trajectory's next proposal before the verdict on the current one.
    pub speculate: bool,
}

impl RunPlan {
    /// One round of one checked trajectory: the baseline of measurements. `steps` is the budget of
    /// proposals; apart from it, only the attempts at a state are limited.
    pub fn single(steps: u64) -> Self {
        Self {
            strategy: Strategy::Iterative,
            vote: VoteRule::Majority,
            early_stop: true,
            adaptive_rounds: true,
            fanout: 1,
            max_rounds: 1,
            confidence: 1.0,
            limits: Limits { attempts_max: 8, pops_max: 1, ..Limits::DEFAULT },
            budget: Budget {
                steps,
                tokens: 0,
                completion_tokens: 0,
                cost: Cost::ZERO,
                wall_ms: u64::MAX,
            },
            weights: RewardWeights { task: 1.0, verify: 1.0, efficiency: 0.0, format: 0.0 },
            basis: Basis::rules(Kinds::WITHOUT_TRANSITION),
            locates: false,
            learnt: Vec::new(),
            speculate: false,
        }
    }

    /// Votes of a round.
    pub(super) fn voters(&self) -> u32 {
        if self.strategy.is_synchronous() { 1 } else { self.strategy.trajectories(self.fanout) }
    }

    /// Trajectories of a round that can answer.
    pub fn trajectories(&self) -> u32 {
        self.strategy.trajectories(self.fanout)
    }

    /// Concurrent turns at the start of a round.
    pub(super) fn slots(&self) -> u32 {
        match &self.strategy {
            Strategy::Greedy => 1,
            Strategy::Beam(beam) => beam.actions,
            Strategy::ParticleFilter(filter) => filter.particles,
            // More at the first state would not be kept.
            Strategy::Uct(tree) => self.fanout.min(tree.width).min(self.limits.attempts_max),
            Strategy::Iterative | Strategy::BestOfN | Strategy::Ahead(_) => self.fanout,
        }
    }

    /// Checks that a round is as small as configurations allow: a plan from outside must not make
    /// more trajectories than fit into the memory.
    ///
    /// # Errors
    /// Which of its sizes is too large.
    pub fn check_size(&self) -> Result<(), String> {
        let sizes = match &self.strategy {
            Strategy::Beam(beam) => [beam.width, beam.actions],
            Strategy::ParticleFilter(filter) => [filter.particles, 1],
            Strategy::Uct(tree) => [tree.width, 1],
            Strategy::Iterative | Strategy::Greedy | Strategy::BestOfN | Strategy::Ahead(_) => {
                [1, 1]
            }
        };
        let largest = sizes.into_iter().fold(self.fanout, u32::max);
        if largest > SIDE_BY_SIDE_MAX || self.max_rounds > ROUNDS_MAX {
            return Err(format!(
                "its plan has {largest} trajectories side by side in {} rounds, and at most \
                 {SIDE_BY_SIDE_MAX} in {ROUNDS_MAX} are possible",
                self.max_rounds
            ));
        }
        Ok(())
    }

    /// Votes that the winner of a round needs, at least one. The best of N needs no agreement.
    pub(super) fn quorum(&self) -> u32 {
        let voters = self.voters();
        if self.strategy == Strategy::BestOfN {
            return 1;
        }

        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and voters"
        )]
        let share = (self.confidence * f64::from(voters)).ceil() as u32;

        share.clamp(1, voters)
    }
}
