//! The policy in training: its weights, the initial ones as reference, and the optimizer, in the
//! arithmetic of the recipe.

use super::arithmetic::Arithmetic;
use super::gpu_arithmetic::OnGpu;
use super::objective::{self, Drawn, Loss, Terms};
use super::processor_arithmetic::OnProcessor;
use super::recipe::Update;
use crate::TrainError;
use crate::batch::Batch;
use crate::layout::Layout;
use crate::optimizer::Moments;
use crate::recipe::{Compute, Optimizer};
use prime_kernels::Bf16;

/// The policy's weights as rollouts read them, and the arithmetic of its updates.
pub struct Policy {
    flat: Vec<f32>,
    arithmetic: Box<dyn Arithmetic>,
}

impl Policy {
    /// Continues after `steps` updates; `initial` is the reference of the KL divergence.
    ///
    /// # Errors
    /// If the recipe asks for a GPU that cannot be used.
    pub fn new(
        update: Update,
        optimizer: &Optimizer,
        layout: &Layout,
        [flat, initial]: [&[f32]; 2],
        moments: Moments,
        steps: u64,
    ) -> Result<Self, TrainError> {
        let weights = [flat, initial];
        let arithmetic: Box<dyn Arithmetic> = match (update.gpu, update.compute) {
            (Some(ordinal), _) => {
                Box::new(OnGpu::new(ordinal, optimizer, layout, weights, &moments, steps)?)
            }
            (None, Compute::F32) => {
                Box::new(OnProcessor::<f32>::new(optimizer, layout, weights, moments, steps))
            }
            (None, Compute::Bf16) => {
                Box::new(OnProcessor::<Bf16>::new(optimizer, layout, weights, moments, steps))
            }
        };

        Ok(Self { flat: flat.to_vec(), arithmetic })
    }

    /// The weights in the order of the layout, as of the last call of [`settle`](Self::settle).
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    /// Brings [`flat`](Self::flat) up to date with the optimizer's steps. Returns the optimizer's
    /// moments.
    ///
    /// # Errors
    /// If a GPU fails.
    pub fn settle(&mut self) -> Result<Moments, TrainError> {
        let (flat, moments) = self.arithmetic.state()?;
        self.flat = flat;
        Ok(moments)
    }

    /// Adds the gradient of a pass, whose targets are the `drawn` tokens, to that of the step.
    /// Returns the objective's terms for each.
    ///
    /// # Errors
    /// If a GPU fails.
    pub fn learn(
        &mut self,
        batch: &Batch,
        loss: Loss,
        drawn: &[Drawn],
    ) -> Result<Vec<Terms>, TrainError> {
        let mut terms = Vec::with_capacity(drawn.len());
        self.arithmetic.minimise(batch, &mut |place, row| {
            terms.push(loss.differentiate(row, &drawn[place]));
        })?;

        Ok(terms)
    }

    /// Applies the gradient of the passes since the last step, unless it is not finite. Returns its
    /// norm.
    ///
    /// # Errors
    /// If a GPU fails.
    pub fn step(&mut self, rate: f64) -> Result<f64, TrainError> {
        self.arithmetic.step(rate)
    }

    /// ln π_ref of each of the batch's targets.
    ///
    /// # Errors
    /// If a GPU fails.
    pub fn reference(&mut self, batch: &Batch, temperature: f32) -> Result<Vec<f32>, TrainError> {
        let mut logprobs = Vec::with_capacity(batch.targets.len());
        self.arithmetic.each_logits_of_reference(batch, &mut |place, row| {
            logprobs.push(objective::policy(row, temperature, batch.targets[place].token));
        })?;
        Ok(logprobs)
    }

    /// The hidden state at each of the batch's targets, [targets, d_model].
    ///
    /// # Errors
    /// If a GPU fails.
    pub fn features(&mut self, batch: &Batch) -> Result<Vec<f32>, TrainError> {
        self.arithmetic.features(batch)
    }

    /// See [`Arithmetic::shares_prompts`].
    pub fn shares_prompts(&self) -> bool {
        self.arithmetic.shares_prompts()
    }
}
