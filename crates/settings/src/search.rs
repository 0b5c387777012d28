//! Search options of section `run`: strategy, vote, and their parameters. No logic here.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A value of `run.strategy`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum StrategyName {
    /// The paper's protocol.
    Iterative,
    /// One trajectory of the most likely actions.
    Greedy,
    /// The single pass with the fewest violations.
    BestOfN,
    /// The most likely partial trajectories in parallel.
    Beam,
    /// A vote on each step, until an action is ahead by k.
    Ahead,
    /// Weighed partial trajectories, resampled when few carry the weight.
    ParticleFilter,
    /// A tree of states, searched by UCB1.
    Uct,
}

/// A value of `run.vote`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum VoteName {
    /// One vote per trajectory.
    Majority,
    /// Close numbers agree.
    Tolerance,
    /// Clean trajectories weigh more.
    Weighted,
}

/// Section `run.beam`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeamOptions {
    /// Beam width: partial trajectories kept (the paper's B).
    #[schemars(range(min = 1, max = 64))]
    pub width: u32,
    /// Proposals per partial trajectory (the paper's top-k): the most likely action, and samples.
    /// `width` times this is at most 256.
    #[schemars(range(min = 1, max = 64))]
    pub actions: u32,
}

/// Section `run.ahead`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AheadOptions {
    /// Lead in votes that an action needs over every other; 0 = the smallest that reaches
    /// `reliability` over T_max steps if a sample is right with probability `step_accuracy`.
    #[schemars(range(min = 0, max = 1_000))]
    pub k: u32,
    /// Target probability that all steps of a run are right.
    #[schemars(range(max = 0.999_999_999_999), extend("exclusiveMinimum" = 0.0))]
    pub reliability: f64,
    /// Probability that one proposal is right, as measured by `prime-agents bench steps` for your
    /// model and tasks. Determines k and the error bound of each result; 0 = unknown (then set
    /// `k`).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub step_accuracy: f64,
    /// Maximum proposals per step; then the leader is taken and the step is counted as undecided.
    #[schemars(range(min = 1, max = 10_000))]
    pub samples_max: u32,
    /// A proposal with more characters, derivation included, is a red flag and is discarded before
    /// the vote.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub characters_max: u32,
}

/// Section `run.particle_filter`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParticleFilterOptions {
    /// Particles: partial trajectories that each propose one step at a time. The weight of one is
    /// 1 / (1 + ΣV) over its steps since the last resampling, and 0 after a rejected proposal.
    #[schemars(range(min = 1, max = 256))]
    pub particles: u32,
    /// Resample when the effective number of particles, (Σw)² / Σw², is below this share of
    /// `particles`; 0 = never, 1 = whenever the weights differ.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub resample_below: f64,
}

/// Section `run.uct`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UctOptions {
    /// Most different accepted actions (expansions) of a state. Rejected proposals are bounded by
    /// `run.attempts_max`.
    #[schemars(range(min = 1, max = 64))]
    pub width: u32,
    /// Weight of exploration, the constant c of UCB1, for returns scaled to 0 to 1; 0 = best first.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub exploration: f64,
    /// Maximum simulations of a round, each until a proposal is rejected or the trace ends.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub simulations: u32,
}

/// Section `run.group`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupOptions {
    /// `fixed` (the fan-out is `run.fanout`) or `dynamic` (the paper's G(d) = min + (max − min) ·
    /// σ(d − midpoint), where d is log10 of T_max, the length of the problem's longest valid
    /// trace).
    pub size: GroupSize,
    /// Minimum fan-out of `dynamic`.
    #[schemars(range(min = 1, max = 256))]
    pub min: u32,
    /// Maximum fan-out of `dynamic`.
    #[schemars(range(min = 1, max = 256))]
    pub max: u32,
    /// Difficulty d at which the fan-out is halfway (the paper's d₀).
    #[schemars(range(min = -20.0, max = 20.0))]
    pub midpoint: f64,
}

/// Section `run.diversity`: how the trajectories of a round differ. Their prompts differ by
/// `agents.executor.prompt_variants`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiversityOptions {
    /// The trajectories' temperatures are spaced evenly over `run.temperature` ± this (at least 0).
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature_spread: f64,
    /// `distinct` (each trajectory has seeds of its own) or `shared` (only temperatures and prompts
    /// tell them apart).
    pub seeds: SeedChoice,
}

/// A value of `run.diversity.seeds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum SeedChoice {
    Distinct,
    Shared,
}

/// A value of `run.group.size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the option's documentation says it")]
pub enum GroupSize {
    Fixed,
    Dynamic,
}
