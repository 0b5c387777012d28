//! Supervised steps of other tasks, learnt together with the samples of each optimizer step
//! (PPO-ptx of Ouyang et al. 2022, section 3.5), so that the policy does not forget these tasks
//! while it practises others.

use prime_bench::tasks;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Data;
use super::objective::{Drawn, Gain, Loss, Objective};
use crate::TrainError;
use crate::batch::Batch;
use crate::layout::uniform;
use crate::recipe::{self, Words};
use crate::samples::{Samples, draw_encoded};
use crate::traces::Traces;
use crate::vocabulary::Vocabulary;

/// The tasks that are rehearsed, and their share of an optimizer step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RehearsalPlan {
    /// Slugs of the tasks, which are equally frequent. Steps of their reference traces are
    /// rehearsed, of all levels.
    pub tasks: Vec<String>,
    /// Minimum number of tokens of an optimizer step; the last sample exceeds it.
    #[serde(default = "tokens")]
    pub tokens: usize,
    /// γ: weight of the mean cross-entropy of their tokens relative to the objective of the
    /// rollouts.
    #[serde(default = "coefficient")]
    pub coefficient: f64,
}

fn tokens() -> usize {
    4_096
}

fn coefficient() -> f64 {
    1.0
}

impl RehearsalPlan {
    /// True if the plan names tasks, and its numbers are positive and finite.
    pub fn is_valid(&self) -> bool {
        !self.tasks.is_empty()
            && self.tokens > 0
            && self.coefficient > 0.0
            && self.coefficient.is_finite()
    }
}

/// Draws the samples that are rehearsed.
pub struct Rehearsal {
    plan: RehearsalPlan,
    samples: Traces,
    context: usize,
    pass_tokens: usize,
}

impl Rehearsal {
    /// A rehearsal for a policy with this vocabulary and context, in passes of at most
    /// `pass_tokens` tokens, if no sample is longer.
    ///
    /// # Errors
    /// If there is no task with a name, or a task has no lesson.
    pub fn new(
        plan: &RehearsalPlan,
        data: &Data,
        vocabulary: &Vocabulary,
        context: usize,
        pass_tokens: usize,
    ) -> Result<Self, TrainError> {
        for name in &plan.tasks {
            let task = tasks::find(name)
                .map_err(|error| TrainError::Recipe(format!("rehearsal.tasks: {error}")))?;
            if !prime_lessons::has_lesson(task.spec().slug) {
                return Err(TrainError::Recipe(format!(
                    "rehearsal.tasks: {name} has no lesson (see docs/lessons.md)"
                )));
            }
        }

        let samples = Traces::new(&recipe::Data {
            tasks: plan.tasks.clone(),
            words: Words::Listed(vocabulary.words().to_vec()),
            by_form: 0.5,
            benchmark_inputs: data.benchmark_inputs.clone(),
            training_base_seed: data.training_base_seed,
            held_out_base_seed: data.held_out_base_seed,
            ..recipe::Data::default()
        })?;
        Ok(Self { plan: plan.clone(), samples, context, pass_tokens })
    }

    /// Begins an iteration, whose draws depend on its random stream alone.
    pub fn begin(&mut self) {
        self.samples.begin_pool();
    }

    /// Draws the passes of an optimizer step.
    ///
    /// # Errors
    /// If the samples of a task do not fit the context.
    pub fn draw(&mut self, rng: &mut ChaCha8Rng) -> Result<Vec<Batch>, TrainError> {
        let mut passes = vec![Batch::default()];
        let mut drawn = 0;

        while drawn < self.plan.tokens {
            let task = ((uniform(rng) * self.plan.tasks.len() as f64) as usize)
                .min(self.plan.tasks.len() - 1);

            let sample = draw_encoded(&mut self.samples, task, false, self.context, rng)?;
            drawn += sample.inputs();

            let pass = passes.last().expect("invariant: there is a pass");
            if !pass.inputs.is_empty() && pass.inputs.len() + sample.inputs() > self.pass_tokens {
                passes.push(Batch::default());
            }
            passes.last_mut().expect("invariant: there is a pass").push(&sample, self.context)?;
        }

        Ok(passes)
    }

    /// The targets of a pass for the objective: each is to become more likely, and the `total`
    /// targets of the optimizer step together have the weight γ.
    pub fn drawn(&self, pass: &Batch, total: usize) -> Vec<Drawn> {
        let weight = (self.plan.coefficient / total as f64) as f32;
        let of_target = |token| Drawn { token, old: 0.0, reference: 0.0, advantage: 1.0, weight };
        pass.targets.iter().map(|target| of_target(target.token)).collect()
    }
}

/// Cross-entropy: A = 1 at the temperature at which the model was taught.
pub const CROSS_ENTROPY: Loss = Loss {
    objective: Objective { clip: 0.0, kl: 0.0, entropy: 0.0 },
    gain: Gain::Likelihood,
    temperature: 1.0,
};
