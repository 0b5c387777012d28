//! The policy under training: weights, the initial ones as reference, and the optimizer, in the arithmetic of the recipe.

use std::borrow::Cow;

use burn::tensor::{Device, Tensor};

use super::objective::{self, Drawn, Loss, Terms};
use super::recipe::RlRecipe;
use crate::batch::Batch;
use crate::layout::Layout;
use crate::mixed::{Gradient, MixedNetwork, MixedUpdater, Weights, Workspace};
use crate::model::{Network, floats, tensors, values};
use crate::optimizer::{Moments, Updater};
use crate::recipe::Compute;

pub struct Policy {
    layout: Layout,
    arithmetic: Arithmetic,
}

enum Arithmetic {
    F32(Box<F32>),
    Bf16(Box<Bf16>),
}

/// Burn's tensors and gradients.
struct F32 {
    network: Network,
    weights: Vec<Tensor<2>>,
    reference: Vec<Tensor<2>>,
    updater: Updater,
    /// The sum of a step's passes; empty before the first.
    gradients: Vec<Tensor<2>>,
}

/// Mixed precision.
struct Bf16 {
    network: MixedNetwork,
    flat: Vec<f32>,
    /// Those of `flat`, prepared for products.
    weights: Weights,
    reference: Weights,
    updater: MixedUpdater,
    workspace: Workspace,
    gradient: Gradient,
    flat_gradient: Vec<f32>,
}

impl Policy {
    /// Goes on after `steps` updates; `initial` is the reference of the KL divergence.
    pub fn new(recipe: &RlRecipe, layout: &Layout, [flat, initial]: [&[f32]; 2], moments: Moments, steps: u64) -> Self {
        let device = Device::flex();
        let arithmetic = match recipe.update.compute {
            Compute::F32 => Arithmetic::F32(Box::new(F32 {
                network: Network::new(recipe.model),
                weights: tensors(layout, flat, &device),
                reference: tensors(layout, initial, &device),
                updater: Updater::new(&recipe.optimizer, layout, &moments, steps, &device),
                gradients: Vec::new(),
            })),
            Compute::Bf16 => Arithmetic::Bf16(Box::new(Bf16 {
                network: MixedNetwork::new(layout),
                flat: flat.to_vec(),
                weights: prepared(layout, flat),
                reference: prepared(layout, initial),
                updater: MixedUpdater::new(&recipe.optimizer, layout, moments, steps),
                workspace: Workspace::default(),
                gradient: Gradient::new(layout),
                flat_gradient: vec![0.0; layout.len],
            })),
        };
        Self { layout: layout.clone(), arithmetic }
    }

    /// Whether completions of one prompt are learnt from together, so that it is read once.
    pub fn shares_prompts(&self) -> bool {
        matches!(self.arithmetic, Arithmetic::Bf16(_))
    }

    /// The weights in the order of the layout.
    pub fn flat(&self) -> Cow<'_, [f32]> {
        match &self.arithmetic {
            Arithmetic::F32(policy) => Cow::Owned(values(&self.layout, &policy.weights)),
            Arithmetic::Bf16(policy) => Cow::Borrowed(&policy.flat),
        }
    }

    pub fn moments(&self) -> Moments {
        match &self.arithmetic {
            Arithmetic::F32(policy) => policy.updater.moments(&self.layout),
            Arithmetic::Bf16(policy) => policy.updater.moments(),
        }
    }

    /// Adds the gradient of a pass, whose targets are the `drawn` tokens, to that of the step. What the objective says of each.
    pub fn learn(&mut self, batch: &Batch, loss: Loss, drawn: &[Drawn]) -> Vec<Terms> {
        match &mut self.arithmetic {
            Arithmetic::F32(policy) => policy.learn(batch, loss, drawn),
            Arithmetic::Bf16(policy) => {
                let Bf16 { network, weights, workspace, gradient, .. } = &mut **policy;
                let mut terms = Vec::with_capacity(drawn.len());
                network.minimise(weights, batch, workspace, gradient, |place, row| {
                    terms.push(loss.differentiate(row, &drawn[place]));
                });
                terms
            }
        }
    }

    /// Applies the gradient of the passes since the last step, unless it is not finite. Its norm.
    pub fn step(&mut self, rate: f64) -> f64 {
        match &mut self.arithmetic {
            Arithmetic::F32(policy) => {
                let gradients = std::mem::take(&mut policy.gradients);
                let squares = gradients.iter().map(|gradient| gradient.clone().square().sum().into_scalar::<f32>());
                let norm = squares.map(f64::from).sum::<f64>().sqrt();
                if norm.is_finite() {
                    policy.updater.update(&mut policy.weights, gradients, norm.max(NORM_MIN), rate);
                }
                norm
            }
            Arithmetic::Bf16(policy) => {
                policy.gradient.take(&self.layout, &mut policy.flat_gradient);
                let norm = prime_kernels::rows::squares(&policy.flat_gradient).sqrt();
                if norm.is_finite() {
                    policy.updater.update(&mut policy.flat, &mut policy.flat_gradient, norm.max(NORM_MIN), rate);
                    policy.weights.prepare(&self.layout, &policy.flat);
                }
                norm
            }
        }
    }

    /// ln π_ref of each of the batch's targets.
    pub fn reference(&mut self, batch: &Batch, temperature: f32) -> Vec<f32> {
        let of = |place: usize, row: &mut [f32]| objective::policy(row, temperature, batch.targets[place].token);
        match &mut self.arithmetic {
            Arithmetic::F32(policy) => {
                let logits = policy.network.logits(&policy.reference, batch);
                let [_, width] = logits.dims();
                floats(logits).chunks_exact_mut(width).enumerate().map(|(place, row)| of(place, row)).collect()
            }
            Arithmetic::Bf16(policy) => {
                let mut logprobs = Vec::with_capacity(batch.targets.len());
                let see = |place: usize, row: &mut [f32]| logprobs.push(of(place, row));
                policy.network.each_logits(&policy.reference, batch, &mut policy.workspace, see);
                logprobs
            }
        }
    }

    /// The hidden state at each of the batch's targets, [targets, d_model].
    pub fn features(&mut self, batch: &Batch) -> Vec<f32> {
        match &mut self.arithmetic {
            Arithmetic::F32(policy) => floats(policy.network.features(&policy.weights, batch)),
            Arithmetic::Bf16(policy) => policy.network.features(&policy.weights, batch, &mut policy.workspace),
        }
    }
}

/// Of a gradient that is zero everywhere.
const NORM_MIN: f64 = 1e-12;

impl F32 {
    fn learn(&mut self, batch: &Batch, loss: Loss, drawn: &[Drawn]) -> Vec<Terms> {
        let mut terms = Vec::new();
        let (_, slopes) = self.network.minimise(&self.weights, batch, 1.0, |logits| {
            terms = loss.terms(logits.clone().inner(), drawn);
            loss.losses(logits, drawn.to_vec())
        });
        let sum = std::mem::take(&mut self.gradients);
        self.gradients =
            if sum.is_empty() { slopes } else { sum.into_iter().zip(slopes).map(|(sum, slope)| sum + slope).collect() };
        terms
    }
}

fn prepared(layout: &Layout, flat: &[f32]) -> Weights {
    let mut weights = Weights::default();
    weights.prepare(layout, flat);
    weights
}
