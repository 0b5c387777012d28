//! Training recipes: the TOML file that determines everything a run depends on, except its samples.
//! Reads neither clock nor disk: text in, checked values out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::correction_plan::CorrectionPlan;
use super::element::{BLOCK, Precision};
use super::{TrainError, all_hold};

/// A recipe of supervised training, as in its TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the model; written into the GGUF.
    pub name: String,
    /// Seeds initialisation, sampling and the held-out set.
    pub seed: u64,
    /// When the training ends.
    pub budget: Budget,
    /// A GGUF file, exported by this trainer for the same architecture, whose weights training
    /// starts from; if absent, they are random. A relative path starts at the working directory.
    #[serde(default)]
    pub init: Option<PathBuf>,
    /// Sizes of the network.
    #[serde(default)]
    pub model: Architecture,
    /// What to learn from.
    #[serde(default)]
    pub data: Data,
    /// How samples are batched.
    #[serde(default)]
    pub batch: BatchPlan,
    /// Training on the model's own mistakes.
    #[serde(default)]
    pub corrections: CorrectionPlan,
    /// Optimizer and learning rate.
    #[serde(default)]
    pub optimizer: Optimizer,
    /// Evaluations on held-out samples.
    #[serde(default)]
    pub evaluation: Evaluation,
    /// How the model is written.
    #[serde(default)]
    pub export: Export,
}

/// The length of a run; the learning rate depends on the fraction used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Budget {
    /// Optimizer steps, which make the run reproducible.
    Steps(u64),
    /// Wall-clock minutes, over all resumed parts of the run.
    Minutes(f64),
    /// Seconds of processor time, by which trainings are compared, over all parts of the run.
    CpuSeconds(f64),
}

/// A llama-architecture decoder with tied embeddings and no biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Architecture {
    /// Width of the residual stream; a multiple of `heads`.
    pub d_model: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of attention heads per layer.
    pub heads: usize,
    /// Width of the SwiGLU feed-forward.
    pub ff: usize,
    /// Longest sequence, in tokens, bos and eos included.
    pub context: usize,
}

impl Default for Architecture {
    fn default() -> Self {
        Self { d_model: 128, layers: 4, heads: 4, ff: 384, context: 512 }
    }
}

impl Architecture {
    /// Width of an attention head.
    pub fn head_dim(&self) -> usize {
        self.d_model / self.heads
    }
}

/// The agent to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Proposes the next step: the completion is a derivation and the action line.
    #[default]
    Executor,
    /// Judges a proposed step: the completion is `1` or `0`.
    Verifier,
}

/// The steps to learn from. Read by the sources of samples, not by the training loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The agent that the samples are for.
    pub role: Role,
    /// Slugs of the tasks to train on.
    pub tasks: Vec<String>,
    /// Relative frequencies of tasks; 1 for those that are left out.
    pub shares: BTreeMap<String, f64>,
    /// Tasks for which inputs of the benchmark may be drawn. For other tasks none is drawn,
    /// whatever its seed. A task with too few other inputs, such as tower-of-hanoi, must be listed
    /// here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub benchmark_inputs: Vec<String>,
    /// Relative frequencies of easy, medium and hard instances.
    pub difficulty_mix: [u64; 3],
    /// The first of the thousand base seeds of training instances.
    pub training_base_seed: u64,
    /// The first of the thousand base seeds of held-out instances.
    pub held_out_base_seed: u64,
    /// For executors, the share of the training samples that are drawn so that each form of
    /// completion in a trace is equally likely; the others are uniform over its steps. Held-out
    /// samples are all uniform. `docs/lessons.md` explains forms.
    pub by_form: f64,
    /// For executors, the share of the training samples whose step is drawn among all that are as
    /// good as the reference's, where the task leaves a choice. Reinforcement learning needs a
    /// policy that explores.
    pub choices: f64,
    /// True if training instances are augmented as in the paper (`prime_bench::augmentation`).
    pub augmentation: bool,
    /// Words that become one token each. With `init`, those of its file unless they are listed
    /// here.
    pub words: Words,
}

impl Data {
    /// The frequency of a task relative to the others.
    pub fn share(&self, task: &str) -> f64 {
        self.shares.get(task).copied().unwrap_or(1.0)
    }
}

/// The words of a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// At most this many words of the samples' notation, those that save the most bytes first.
    Frequent(usize),
    /// Exactly these words.
    Listed(Vec<String>),
}

impl Default for Data {
    fn default() -> Self {
        Self {
            role: Role::default(),
            tasks: Vec::new(),
            shares: BTreeMap::new(),
            benchmark_inputs: Vec::new(),
            difficulty_mix: [4, 4, 2],
            training_base_seed: 1_000_000,
            held_out_base_seed: 2_000_000,
            by_form: 0.5,
            choices: 0.0,
            augmentation: false,
            words: Words::Frequent(0),
        }
    }
}

/// How samples are batched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchPlan {
    /// Average number of tokens per optimizer step.
    pub tokens: usize,
    /// Tokens per pass through the network; a step accumulates the gradients of several passes.
    pub pass_tokens: usize,
    /// Threads per step; part of the recipe because the order of summation depends on it.
    pub threads: usize,
    /// Tasks are drawn with probability proportional to `floor` + their held-out error rate.
    pub floor: f64,
    /// The arithmetic of matrix products.
    pub compute: Compute,
    /// The number of the CUDA device that computes losses and gradients, in bf16 products whatever
    /// `compute` says; if absent, the processor does.
    pub gpu: Option<usize>,
    /// Number of threads that draw samples ahead, in addition to those of a step; 0 draws them
    /// between steps. Samples drawn ahead use the weights of the tasks and the corrections of some
    /// steps ago, so a resumed run continues with other samples than an uninterrupted one.
    pub drawers: usize,
}

/// The arithmetic of matrix products in training. Everything else, including the sums and the
/// weights, is f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compute {
    /// Single precision throughout.
    #[default]
    F32,
    /// Faster where the processor multiplies bf16 values (AMX, AVX-512 BF16), slower elsewhere.
    Bf16,
}

impl Default for BatchPlan {
    fn default() -> Self {
        Self {
            tokens: 2048,
            pass_tokens: 512,
            threads: 1,
            floor: 0.1,
            compute: Compute::F32,
            gpu: None,
            drawers: 0,
        }
    }
}

/// The rule by which matrices are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatrixOptimizer {
    /// AdamW, as for all other weights.
    #[default]
    Adamw,
    /// Muon (Jordan et al. 2024), for the matrices within the layers.
    Muon,
}

/// AdamW, or Muon for matrices, with linear warm-up, a stable phase and cosine decay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// The rule for the matrices within the layers; AdamW updates embedding and norms.
    pub matrices: MatrixOptimizer,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Fraction of the budget spent warming up.
    pub warmup: f64,
    /// Fraction of the budget after which the learning rate begins to fall; until then it is at its
    /// peak.
    pub stable: f64,
    /// Learning rate at the end, as a fraction of the peak.
    pub decay_to: f64,
    /// Decay of AdamW's first moment, 0 to 1.
    pub beta1: f64,
    /// Also the momentum of Muon.
    pub beta2: f64,
    /// Applied to matrices, not to norm gains.
    pub weight_decay: f64,
    /// Gradients are scaled down to this global norm.
    pub clip_norm: f64,
    /// The share of itself that the running average of the weights, which is evaluated and
    /// exported, keeps in a step; 0 evaluates and exports the weights themselves.
    pub average: f64,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            matrices: MatrixOptimizer::Adamw,
            learning_rate: 2e-3,
            warmup: 0.02,
            stable: 0.0,
            decay_to: 0.05,
            beta1: 0.9,
            beta2: 0.95,
            weight_decay: 0.1,
            clip_norm: 1.0,
            average: 0.0,
        }
    }
}

/// When held-out samples are evaluated, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evaluation {
    /// Seconds between evaluations; each also writes a checkpoint and a GGUF.
    pub every_s: f64,
    /// Number of held-out samples per task while training.
    pub samples: usize,
    /// Number of held-out samples per task at the end.
    pub final_samples: usize,
    /// Maximum fraction of the time for evaluations, which use fewer samples if necessary.
    pub share_max: f64,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { every_s: 120.0, samples: 200, final_samples: 500, share_max: 0.05 }
    }
}

/// How the model is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Export {
    /// Element type of the matrices in the GGUF file.
    pub matrices: Precision,
}

impl Precision {
    /// Checks that matrices of this architecture can be written.
    ///
    /// # Errors
    /// The rule that the architecture breaks.
    pub(crate) fn check(self, model: Architecture) -> Result<(), &'static str> {
        let is_whole = model.d_model.is_multiple_of(BLOCK) && model.ff.is_multiple_of(BLOCK);
        if self == Self::Q8_0 && !is_whole {
            Err("q8_0 needs d_model and ff in multiples of 32")
        } else {
            Ok(())
        }
    }
}

impl Architecture {
    /// Returns whether products of this shape need no padding within a row.
    pub fn is_supported(self) -> bool {
        let Self { d_model, heads, ff, .. } = self;
        heads > 0
            && [d_model / heads, d_model, ff]
                .iter()
                .all(|size| size.is_multiple_of(prime_kernels::BLOCK))
    }
}

impl Recipe {
    /// Reads and checks a recipe.
    pub fn from_toml(text: &str) -> Result<Self, TrainError> {
        let recipe: Self = toml::from_str(text).map_err(|e| TrainError::Recipe(e.to_string()))?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Checks the rules that the types do not express.
    pub fn check(&self) -> Result<(), TrainError> {
        let model = &self.model;
        let optimizer = &self.optimizer;

        let rules = [
            (model.d_model > 0 && model.layers > 0 && model.ff > 0, "model sizes must be positive"),
            (
                model.heads > 0 && model.d_model.is_multiple_of(2 * model.heads),
                "d_model must be a multiple of twice the number of heads",
            ),
            ((8..=1 << 16).contains(&model.context), "context must be 8 to 65536 tokens"),
            ((1..=64).contains(&self.batch.threads), "threads must be 1 to 64"),
            (self.batch.drawers <= 256, "batch.drawers must be 0 to 256"),
            (
                self.batch.tokens > 0 && self.batch.pass_tokens > 0,
                "a batch needs at least one token",
            ),
            (self.batch.floor > 0.0, "floor must be positive"),
            (model.is_supported(), "d_model, ff and d_model / heads must be multiples of 32"),
            (optimizer.learning_rate > 0.0, "the learning rate must be positive"),
            ((0.0..1.0).contains(&optimizer.warmup), "warmup is a fraction of the budget"),
            ((0.0..1.0).contains(&optimizer.stable), "stable is a fraction of the budget"),
            (
                self.data.shares.iter().all(|(task, share)| {
                    *share > 0.0 && share.is_finite() && self.data.tasks.contains(task)
                }),
                "data.shares: each must be a positive number, and of a task of data.tasks",
            ),
            ((0.0..=1.0).contains(&self.data.by_form), "by_form is a share of the samples"),
            ((0.0..=1.0).contains(&self.data.choices), "choices is a share of the samples"),
            ((0.0..=1.0).contains(&optimizer.decay_to), "decay_to is a fraction of the peak"),
            (optimizer.clip_norm > 0.0, "clip_norm must be positive"),
            ((0.0..1.0).contains(&optimizer.average), "average is a share, below 1"),
            (self.evaluation.every_s > 0.0, "every_s must be positive"),
            ((0.0..=1.0).contains(&self.evaluation.share_max), "share_max is a fraction"),
            (
                self.evaluation.samples > 0 && self.evaluation.final_samples > 0,
                "evaluation needs samples",
            ),
            (
                match self.budget {
                    Budget::Steps(steps) => steps > 0,
                    Budget::Minutes(span) | Budget::CpuSeconds(span) => {
                        span > 0.0 && span.is_finite()
                    }
                },
                "the budget must be positive",
            ),
        ];

        let export = self.export.matrices.check(*model);
        all_hold(&rules).and(export).map_err(|rule| TrainError::Recipe(rule.to_owned()))?;
        self.corrections.check()
    }
}

impl Optimizer {
    /// Learning rate when the fraction `spent` (0 to 1) of the budget is used.
    pub fn rate_at(&self, spent: f64) -> f64 {
        let spent = spent.clamp(0.0, 1.0);
        if spent < self.warmup {
            return self.learning_rate * spent / self.warmup;
        }

        let stable = self.stable.max(self.warmup);
        let fall = ((spent - stable) / (1.0 - stable)).max(0.0);
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * fall).cos());
        self.learning_rate * (self.decay_to + (1.0 - self.decay_to) * cosine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_recipe_parses_and_one_of_a_verifier() {
        let recipe = Recipe::from_toml(include_str!("../../../models/prime-tiny.toml"))
            .expect("a valid recipe");
        assert_eq!((recipe.model, recipe.data.role), (Architecture::default(), Role::Executor));

        let text = "name = 'a'\nseed = 1\nbudget = { steps = 3 }\ninit = 'models/prime-tiny.gguf'\ndata = { role = 'verifier' }\n";
        let verifier = Recipe::from_toml(text).expect("a valid recipe");
        assert_eq!((verifier.model, verifier.data.role), (Architecture::default(), Role::Verifier));
        assert_eq!(verifier.init, Some(PathBuf::from("models/prime-tiny.gguf")));
    }

    #[test]
    fn an_unknown_role_is_refused_with_the_known_ones() {
        let text =
            "name = 'a'\nseed = 1\nbudget = { steps = 3 }\ndata = { role = 'coordinator' }\n";
        let message = Recipe::from_toml(text).expect_err("no such role").to_string();
        assert!(
            message.contains("`coordinator`") && message.contains("`executor` or `verifier`"),
            "{message}"
        );
    }

    #[test]
    fn unknown_fields_and_bad_ranges_are_errors() {
        assert!(
            Recipe::from_toml("name = 'a'\nseed = 1\nbudget = { steps = 3 }\nlr = 1\n").is_err()
        );
        assert!(Recipe::from_toml("name = 'a'\nseed = 1\nbudget = { steps = 0 }\n").is_err());
        assert!(Recipe::from_toml("name = 'a'\nseed = 1\nbudget = { steps = 3 }\n").is_ok());
    }

    #[test]
    fn a_shape_that_products_cannot_have_is_refused() {
        for model in ["d_model = 48", "ff = 100", "heads = 8", "heads = 0"] {
            for compute in ["f32", "bf16"] {
                let text = format!(
                    "name = 'a'\nseed = 1\nbudget = {{ steps = 3 }}\nmodel = {{ {model} }}\nbatch = {{ compute = '{compute}' }}\n"
                );

                let message = Recipe::from_toml(&text).expect_err("no such shape").to_string();
                assert!(message.contains("d_model"), "{model}: {message}");
            }
        }
    }

    #[test]
    fn the_rate_stays_at_its_peak_until_the_stable_phase_ends() {
        let optimizer = Optimizer { stable: 0.8, ..Optimizer::default() };
        for spent in [optimizer.warmup, 0.5, 0.8] {
            assert!((optimizer.rate_at(spent) - optimizer.learning_rate).abs() < 1e-12, "{spent}");
        }
        assert!((optimizer.rate_at(1.0) - 0.05 * optimizer.learning_rate).abs() < 1e-12);
    }

    #[test]
    fn the_rate_rises_then_falls_to_its_floor() {
        let optimizer = Optimizer::default();
        assert!(optimizer.rate_at(0.0) == 0.0);
        assert!((optimizer.rate_at(optimizer.warmup) - optimizer.learning_rate).abs() < 1e-12);
        assert!((optimizer.rate_at(1.0) - 0.05 * optimizer.learning_rate).abs() < 1e-12);
    }
}
