//! Search strategies: the paper's iterative protocol and its variants ("Algorithm Variants"), and
//! per-step voting.

use serde::{Deserialize, Serialize};

use super::coordination::Decision;
use super::reliability::Ahead;

/// The shape of a particle filter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticleFilter {
    /// Particles, at least 1.
    pub particles: u32,
    /// They are resampled when their effective number, (Σw)² / Σw², falls below this share of them,
    /// 0 to 1.
    pub resample_below: f64,
}

/// The shape of a tree search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uct {
    /// Most successors of a state, at least 1.
    pub width: u32,
    /// Weight of exploration (the constant c of UCB1); 0 = best first.
    pub exploration: f64,
    /// Simulations of a round; then the best answer so far counts.
    pub simulations: u32,
}

/// How a run searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The paper's protocol: independent trajectories with retries and backtracking; a vote closes
    /// each round.
    #[default]
    Iterative,
    /// One trajectory of likeliest actions, without retries or backtracking (Algorithm "Greedy
    /// PRIME Execution").
    Greedy,
    /// Independent trajectories without retries or backtracking; the least violating answer wins.
    BestOfN,
    /// The likeliest partial trajectories, extended in parallel (Algorithm "Beam Search
    /// Execution").
    Beam(Beam),
    /// One trajectory. Each step is voted on until an action is ahead of every other by k votes;
    /// proposals that the coordinator rejects are discarded before the vote (MAKER, arXiv
    /// 2511.09030).
    Ahead(Ahead),
    /// Sequential Monte Carlo over steps: particles that the verifier weighs, resampled when few of
    /// them carry the weight (Lew et al. 2023, arXiv 2306.03081; Puri et al. 2025, arXiv
    /// 2502.01618).
    ParticleFilter(ParticleFilter),
    /// Tree search over prefixes by UCB1, with the verifier's score as reward (Kocsis and
    /// Szepesvári 2006, "Bandit Based Monte-Carlo Planning").
    Uct(Uct),
}

/// The shape of a beam search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beam {
    /// Partial trajectories kept (the paper's B).
    pub width: u32,
    /// Proposals drawn for each of them (the paper's top-k).
    pub actions: u32,
}

impl Strategy {
    /// The name in the configuration and in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Iterative => "iterative",
            Self::Greedy => "greedy",
            Self::BestOfN => "best_of_n",
            Self::Beam(_) => "beam",
            Self::Ahead(_) => "ahead",
            Self::ParticleFilter(_) => "particle_filter",
            Self::Uct(_) => "uct",
        }
    }

    /// Returns whether every applicable line is committed, whatever the coordinator decides: a
    /// verdict then only affects the result.
    pub fn is_single_pass(&self) -> bool {
        matches!(self, Self::Greedy | Self::BestOfN)
    }

    /// Returns whether all proposals of a step are gathered before one is chosen.
    pub fn is_synchronous(&self) -> bool {
        self.branches() || matches!(self, Self::Ahead(_))
    }

    /// Returns whether partial trajectories are copied, so that the steps of a slot are not one
    /// trajectory.
    pub fn branches(&self) -> bool {
        matches!(self, Self::Beam(_) | Self::ParticleFilter(_) | Self::Uct(_))
    }

    /// The decision that takes effect when the coordinator decides this.
    #[inline]
    pub fn ruling(&self, decision: Decision) -> Decision {
        // Their weights say what a step that is not quite clean is worth.
        let weighs = matches!(self, Self::ParticleFilter(_) | Self::Uct(_));
        if self.is_single_pass() || (weighs && decision == Decision::Retry) {
            return Decision::Proceed;
        }
        decision
    }

    /// Trajectories of a round that can answer, with `fanout` concurrent turns.
    pub fn trajectories(&self, fanout: u32) -> u32 {
        match self {
            Self::Iterative | Self::BestOfN | Self::Uct(_) => fanout,
            Self::ParticleFilter(filter) => filter.particles,
            Self::Greedy | Self::Ahead(_) => 1,
            Self::Beam(beam) => beam.width,
        }
    }

    /// True if a turn proposes the likeliest action, whatever the temperature. `slot` is its index
    /// among the concurrent turns, `proposals_here` the number of earlier proposals at its state.
    #[inline]
    pub fn is_greedy_turn(&self, slot: u32, proposals_here: u32) -> bool {
        match self {
            // A particle is a sample: a likeliest action would have the wrong weight.
            Self::Iterative | Self::BestOfN | Self::ParticleFilter(_) => false,
            Self::Greedy => true,
            Self::Beam(beam) => proposals_here == 0 && slot.is_multiple_of(beam.actions),
            Self::Ahead(_) => proposals_here == 0 && slot == 0,
            Self::Uct(_) => proposals_here == 0,
        }
    }
}

/// How the answers of a round are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteRule {
    /// One vote per trajectory; answers are equal if their texts are.
    #[default]
    Majority,
    /// Numbers that differ by less than this are equal (the paper's ε).
    Tolerance(f64),
    /// A vote counts 1 / (1 + ΣV) of its trajectory.
    Weighted,
}

/// The group size G(d) of the paper ("Dynamic Group Size"): `min + (max − min) · σ(d − midpoint)`,
/// rounded. `difficulty` is d, here log10 of T_max.
pub fn group_size(min: u32, max: u32, midpoint: f64, difficulty: f64) -> u32 {
    let share = 1.0 / (1.0 + (midpoint - difficulty).exp());
    let size = f64::from(min) + (f64::from(max) - f64::from(min)) * share;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between min and max"
    )]
    let size = size.round() as u32;
    size.clamp(min.min(max), max.max(min))
}

/// The estimated difficulty of a problem whose longest valid trace has `steps_max` steps.
#[expect(clippy::cast_precision_loss, reason = "a logarithm")]
pub fn difficulty(steps_max: u64) -> f64 {
    (steps_max.max(1) as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_grows_from_min_to_max() {
        assert_eq!(group_size(2, 16, 3.0, 3.0), 9, "half way at the midpoint");
        assert_eq!((group_size(2, 16, 3.0, -20.0), group_size(2, 16, 3.0, 30.0)), (2, 16));

        // σ(1) = 0.7310586
        assert_eq!(group_size(0, 1000, 2.0, 3.0), 731);
        assert_eq!((difficulty(1), difficulty(1000)), (0.0, 3.0));
        assert_eq!(group_size(4, 4, 0.0, f64::MAX), 4);
    }
}
