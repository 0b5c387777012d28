//! Recipes of reinforcement learning: the TOML file that determines everything a run depends on.
//! Text in, checked values out.

use std::path::PathBuf;

use prime_bench::tasks::Difficulty;
use prime_protocol::RewardWeights;
use serde::{Deserialize, Serialize};

use super::objective::Objective;
use super::rehearsal::RehearsalPlan;
use crate::{
    TrainError, all_hold,
    recipe::{Architecture, Compute, Export, MatrixOptimizer, Optimizer},
};

/// A recipe of reinforcement learning, as in its TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RlRecipe {
    /// Name of the model; written into the GGUF.
    pub name: String,
    /// Seeds instances, draws and the held-out set.
    pub seed: u64,
    /// The initial policy, an export of this trainer. It is also the reference of the KL
    /// divergence. A relative path starts at the working directory.
    pub init: PathBuf,
    /// When the training ends.
    pub budget: Budget,
    /// Must be that of `init`.
    #[serde(default)]
    pub model: Architecture,
    /// Where instances come from.
    pub data: Data,
    /// What is drawn in an iteration.
    #[serde(default)]
    pub rollout: Rollout,
    /// What is rewarded.
    #[serde(default)]
    pub reward: RewardPlan,
    /// How rewards become advantages.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Coefficients of the objective.
    #[serde(default)]
    pub objective: Objective,
    /// Optimizer and learning rate.
    #[serde(default = "optimizer")]
    pub optimizer: Optimizer,
    /// How an iteration's draws are learnt.
    #[serde(default)]
    pub update: Update,
    /// Supervised steps of other tasks that the policy must not forget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<RehearsalPlan>,
    /// Evaluations on held-out instances.
    #[serde(default)]
    pub evaluation: Evaluation,
    /// What ends the training early.
    #[serde(default)]
    pub stop: Stop,
    /// How the model is written.
    #[serde(default)]
    pub export: Export,
}

/// The length of a run. The learning rate depends on the fraction used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Budget {
    /// Iterations, which make the run reproducible.
    Iterations(u64),
    /// Seconds of processor time, by which runs are compared, over all resumed parts of the run.
    CpuSeconds(f64),
}

/// The instances that are practised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Slugs of the tasks.
    pub tasks: Vec<String>,
    /// Tasks, rehearsed ones included, for which inputs of the benchmark may be drawn. For other
    /// tasks none is drawn, whatever its seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benchmark_inputs: Vec<String>,
    /// The schedule of levels.
    #[serde(default)]
    pub curriculum: Curriculum,
    /// True if training instances are augmented as in the paper (`prime_bench::augmentation`).
    #[serde(default)]
    pub augmentation: bool,
    /// The first of the thousand base seeds of training instances.
    #[serde(default = "training_base_seed")]
    pub training_base_seed: u64,
    /// The first of the thousand base seeds of held-out instances.
    #[serde(default = "held_out_base_seed")]
    pub held_out_base_seed: u64,
}

fn training_base_seed() -> u64 {
    1_000_000
}

fn held_out_base_seed() -> u64 {
    2_000_000
}

/// The schedule of the levels that are practised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Curriculum {
    /// These levels from the beginning, equally often.
    Levels(Vec<Difficulty>),
    /// The paper's three phases (table "Training Curriculum Phases"): easy for the first sixth of
    /// the budget, then easy and medium up to its half, then all levels.
    Phases,
    /// Easy first; the next level is added once this share of the held-out instances of the levels
    /// practised so far is solved.
    Success(f64),
}

impl Default for Curriculum {
    fn default() -> Self {
        Self::Levels(Difficulty::ALL.to_vec())
    }
}

/// The program that draws completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplerKind {
    /// The trainer's own: as fast as the recipe's arithmetic, and reproducible.
    Decoder,
    /// llama.cpp, as it serves models, with the weights of each iteration in f32. The trainer
    /// computes the probabilities of the tokens drawn. Rounding depends on which completions are
    /// drawn together, so runs are not reproducible to the token.
    Engine,
}

/// The draws of one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rollout {
    /// What a group has in common.
    pub unit: Unit,
    /// Number of groups of an iteration: states or instances.
    pub groups: usize,
    /// G: number of completions of a state, or of trajectories of an instance.
    pub group: usize,
    /// T of the draws; the policy that is trained is the one at this temperature.
    pub temperature: f64,
    /// The trainer's own decoder, or an engine as it serves models.
    pub sampler: SamplerKind,
    /// The arithmetic of the decoder's matrix products. If updates use another one, the policy that
    /// drew differs by rounding from the one that is updated; the ratio of the two corrects this.
    pub compute: Compute,
    /// Maximum number of tokens of a completion.
    pub tokens_max: usize,
    /// Maximum number of proposals of a trajectory.
    pub proposals_max: u64,
    /// Number of rejected proposals that ends a trajectory; without it, only `proposals_max` does.
    /// With 1, no compute is spent on trajectories that have taken a wrong turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejections_max: Option<u64>,
    /// With `unit = "state"`, the number of trajectories from which states are drawn.
    pub trajectories: usize,
    /// Share of these trajectories that begin at any state of the reference's trace, not at its
    /// start, so that late states are seen although `proposals_max` is small.
    pub midway: f64,
    /// True if the verifier `rules` judges each step, as it does when the model is served (kinds
    /// format, invariant and terminal). Without it every line that can be applied is committed.
    pub verify: bool,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            unit: Unit::State,
            groups: 64,
            group: 8,
            temperature: 1.0,
            sampler: SamplerKind::Decoder,
            compute: Compute::F32,
            tokens_max: 128,
            proposals_max: 400,
            rejections_max: None,
            trajectories: 24,
            midway: 0.0,
            verify: true,
        }
    }
}

/// What the samples of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Completions at one state that the policy itself has reached.
    State,
    /// Whole trajectories of one instance: the paper's groups.
    Trajectory,
}

/// The source of rewards. Results of different sources must not be mixed in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The paper's composite reward of whole trajectories; with `unit = "state"`, of the
    /// trajectory that continues from there.
    Composite,
    /// 1 − ln(1 + steps) / ln(1 + cap), where `steps` is what the reference still needs after the
    /// step. Knows the reference.
    Oracle,
    /// RLAIF (eq. 12 of the paper): −V of the step, plus λ times the share of the group that
    /// proposed the same line.
    Verifier,
}

/// What is rewarded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardPlan {
    /// Where the rewards come from.
    pub source: Source,
    /// α, β, γ, λ of the composite reward.
    pub weights: RewardWeights,
    /// λ_cons of RLAIF.
    pub consistency: f64,
    /// Number of reference steps at which the oracle stops counting.
    pub oracle_cap: u64,
}

impl Default for RewardPlan {
    fn default() -> Self {
        Self {
            source: Source::Composite,
            weights: RewardWeights::PAPER,
            consistency: 0.2,
            oracle_cap: 400,
        }
    }
}

/// How rewards become advantages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Algorithm {
    /// Relative to the group, divided by its deviation, as in the paper, or by `scale` if that is
    /// given.
    Grpo {
        /// The divisor of the advantages in place of the group's standard deviation; above 0.
        #[serde(default)]
        scale: Option<f64>,
    },
    /// Generalised advantage estimates by a linear critic on the last position of the prompt.
    Ppo {
        /// γ of the returns, 0 to 1.
        discount: f64,
        /// λ of the estimates, 0 to 1.
        lambda: f64,
        /// Largest change of a value per update of the critic; above 0.
        value_clip: f64,
    },
    /// Returns less the value of the same critic, without clipping.
    Reinforce {
        /// γ of the returns, 0 to 1.
        discount: f64,
    },
    /// Supervised training on the best sample of each group, as a control that has seen the same
    /// samples.
    BestOf,
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::Grpo { scale: None }
    }
}

/// How an iteration's samples are learnt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Update {
    /// Passes over the samples of an iteration.
    pub epochs: usize,
    /// Average number of tokens per optimizer step.
    pub tokens: usize,
    /// Tokens per pass through the network.
    pub pass_tokens: usize,
    /// The arithmetic of matrix products.
    pub compute: Compute,
    /// Number of the CUDA device that computes updates; without one, the processor does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
}

impl Default for Update {
    fn default() -> Self {
        Self { epochs: 2, tokens: 16_384, pass_tokens: 1_024, compute: Compute::F32, gpu: None }
    }
}

/// When held-out instances are evaluated, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evaluation {
    /// Number of iterations between evaluations; each also writes a checkpoint and, if the policy
    /// is kept, the model.
    pub every: u64,
    /// Number of held-out instances per task and level.
    pub instances: u32,
    /// Maximum number of proposals of an attempt; without it, that of `rollout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposals_max: Option<u64>,
    /// Which policy becomes the model.
    pub keep: Keep,
}

/// Which of the evaluated policies becomes the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The best of them, the initial policy included.
    #[default]
    Best,
    /// The last one that has not collapsed. With few held-out instances, the best of many
    /// evaluations is the luckiest.
    Last,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { every: 20, instances: 20, proposals_max: None, keep: Keep::Best }
    }
}

/// The limits at which a run stops before its budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Maximum mean divergence per token from the initial policy, in nats.
    pub kl_max: f64,
    /// Maximum drop of the share of held-out instances solved below the initial policy's.
    pub solved_drop: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { kl_max: 0.5, solved_drop: 0.1 }
    }
}

/// Small steps without decay, which move the policy instead of rebuilding it.
fn optimizer() -> Optimizer {
    Optimizer {
        matrices: MatrixOptimizer::Adamw,
        learning_rate: 1e-4,
        warmup: 0.0,
        stable: 0.9,
        decay_to: 0.1,
        beta1: 0.9,
        beta2: 0.98,
        weight_decay: 0.0,
        clip_norm: 1.0,
        average: 0.0,
    }
}

impl RlRecipe {
    /// Reads and checks a recipe.
    ///
    /// # Errors
    /// Names the field that is unknown, missing or out of range.
    pub fn from_toml(text: &str) -> Result<Self, TrainError> {
        let recipe: Self = toml::from_str(text).map_err(|e| TrainError::Recipe(e.to_string()))?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Checks the rules that the types do not express.
    ///
    /// # Errors
    /// Names the rule that is broken.
    pub fn check(&self) -> Result<(), TrainError> {
        let Self { rollout, optimizer, update, evaluation, stop, objective, reward, .. } = self;
        let discount = |discount: f64| (0.0..=1.0).contains(&discount);
        let algorithm = match self.algorithm {
            Algorithm::Grpo { scale } => scale.is_none_or(|scale| scale > 0.0 && scale.is_finite()),
            Algorithm::Ppo { discount: d, lambda, value_clip } => {
                discount(d) && discount(lambda) && value_clip > 0.0
            }
            Algorithm::Reinforce { discount: d } => discount(d),
            Algorithm::BestOf => true,
        };

        let compares = matches!(self.algorithm, Algorithm::Grpo { .. } | Algorithm::BestOf);
        let rules = [
            (!self.data.tasks.is_empty(), "data.tasks: list some"),
            (
                match &self.data.curriculum {
                    Curriculum::Levels(levels) => !levels.is_empty(),
                    Curriculum::Phases => true,
                    Curriculum::Success(share) => (0.0..=1.0).contains(share),
                },
                "data.curriculum: levels = [...] needs one, success is a share",
            ),
            (
                match self.budget {
                    Budget::Iterations(iterations) => iterations > 0,
                    Budget::CpuSeconds(seconds) => seconds > 0.0 && seconds.is_finite(),
                },
                "budget: must be positive",
            ),
            (rollout.groups > 0 && rollout.group > 0, "rollout: groups and group must be positive"),
            (
                !compares || rollout.group > 1,
                "rollout.group: this algorithm compares samples, it needs two or more",
            ),
            (
                self.model.is_supported(),
                "model: d_model, ff and d_model / heads must be multiples of 32",
            ),
            (
                rollout.temperature > 0.0 && rollout.temperature.is_finite(),
                "rollout.temperature: must be positive",
            ),
            (
                rollout.tokens_max > 1 && rollout.proposals_max > 0,
                "rollout: tokens_max must be at least 2, proposals_max at least 1",
            ),
            (
                rollout.rejections_max != Some(0),
                "rollout.rejections_max: must be positive; leave it out to end no trajectory by its rejections",
            ),
            (rollout.trajectories > 0, "rollout.trajectories: must be positive"),
            ((0.0..=1.0).contains(&rollout.midway), "rollout.midway: a share, from 0 to 1"),
            (
                rollout.midway == 0.0 || rollout.unit == Unit::State,
                "rollout.midway: the groups of whole trajectories begin at the start; it needs rollout.unit = \"state\"",
            ),
            (
                algorithm,
                "algorithm: a factor is out of range (discount and lambda 0 to 1, scale and value_clip above 0)",
            ),
            (
                reward.source == Source::Composite || rollout.unit == Unit::State,
                "reward.source: oracle and verifier reward steps, so they need rollout.unit = \"state\"",
            ),
            ((0.0..1.0).contains(&objective.clip), "objective.clip: 0 (off) to 1"),
            (
                objective.kl >= 0.0 && objective.entropy >= 0.0,
                "objective: kl and entropy must not be negative",
            ),
            (optimizer.learning_rate > 0.0, "optimizer.learning_rate: must be positive"),
            (optimizer.clip_norm > 0.0, "optimizer.clip_norm: must be positive"),
            (
                update.epochs > 0 && update.tokens > 0 && update.pass_tokens > 0,
                "update: all fields must be positive",
            ),
            (
                evaluation.every > 0
                    && evaluation.instances > 0
                    && evaluation.proposals_max != Some(0),
                "evaluation: all fields must be positive",
            ),
            (
                self.rehearsal.as_ref().is_none_or(RehearsalPlan::is_valid),
                "rehearsal: list tasks; tokens and coefficient must be positive",
            ),
            (stop.kl_max > 0.0 && stop.solved_drop > 0.0, "stop: all fields must be positive"),
        ];

        all_hold(&rules).map_err(|rule| TrainError::Recipe(rule.to_owned()))
    }
}
