//! The policy under training: weights, the initial ones as reference, and the optimizer, in the arithmetic of the recipe.

use prime_kernels::{Bf16, Element, rows};

use super::objective::{self, Drawn, Loss, Terms};
use super::recipe::RlRecipe;
use crate::batch::Batch;
use crate::layout::Layout;
use crate::network::{Gradient, Network, Weights, Workspace};
use crate::optimizer::{Moments, Updater};
use crate::recipe::Compute;

pub struct Policy {
    layout: Layout,
    network: Network,
    flat: Vec<f32>,
    arithmetic: Box<dyn Arithmetic>,
    /// The sum of a step's passes.
    gradient: Gradient,
    flat_gradient: Vec<f32>,
}

/// [`Prepared`] weights of any element type. Functions get each target's place and logits.
trait Arithmetic {
    fn minimise(
        &mut self,
        network: &Network,
        batch: &Batch,
        gradient: &mut Gradient,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    );
    fn each_logits_of_reference(&mut self, network: &Network, batch: &Batch, see: &mut dyn FnMut(usize, &mut [f32]));
    fn features(&mut self, network: &Network, batch: &Batch) -> Vec<f32>;
    fn update(&mut self, layout: &Layout, flat: &mut [f32], gradient: &mut [f32], norm: f64, rate: f64);
    fn moments(&self) -> Moments;
}

/// Weights prepared for products, which multiply `E`, and what updates them.
struct Prepared<E: Element> {
    weights: Weights<E>,
    reference: Weights<E>,
    updater: Updater<E>,
    workspace: Workspace<E>,
}

impl<E: Element> Prepared<E> {
    fn new(recipe: &RlRecipe, layout: &Layout, [flat, initial]: [&[f32]; 2], moments: Moments, steps: u64) -> Self {
        Self {
            weights: Weights::of(layout, flat),
            reference: Weights::of(layout, initial),
            updater: Updater::new(&recipe.optimizer, layout, moments, steps),
            workspace: Workspace::default(),
        }
    }
}

impl<E: Element> Arithmetic for Prepared<E> {
    fn minimise(
        &mut self,
        network: &Network,
        batch: &Batch,
        gradient: &mut Gradient,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) {
        network.minimise(&self.weights, batch, &mut self.workspace, gradient, slope);
    }

    fn each_logits_of_reference(&mut self, network: &Network, batch: &Batch, see: &mut dyn FnMut(usize, &mut [f32])) {
        network.each_logits(&self.reference, batch, &mut self.workspace, see);
    }

    fn features(&mut self, network: &Network, batch: &Batch) -> Vec<f32> {
        network.features(&self.weights, batch, &mut self.workspace)
    }

    fn update(&mut self, layout: &Layout, flat: &mut [f32], gradient: &mut [f32], norm: f64, rate: f64) {
        self.updater.update(flat, gradient, norm, rate);
        self.weights.prepare(layout, flat);
    }

    fn moments(&self) -> Moments {
        self.updater.moments()
    }
}

impl Policy {
    /// Goes on after `steps` updates; `initial` is the reference of the KL divergence.
    pub fn new(recipe: &RlRecipe, layout: &Layout, weights: [&[f32]; 2], moments: Moments, steps: u64) -> Self {
        Self {
            layout: layout.clone(),
            network: Network::new(layout),
            flat: weights[0].to_vec(),
            arithmetic: match recipe.update.compute {
                Compute::F32 => Box::new(Prepared::<f32>::new(recipe, layout, weights, moments, steps)),
                Compute::Bf16 => Box::new(Prepared::<Bf16>::new(recipe, layout, weights, moments, steps)),
            },
            gradient: Gradient::new(layout),
            flat_gradient: vec![0.0; layout.len],
        }
    }

    /// The weights in the order of the layout.
    pub fn flat(&self) -> &[f32] {
        &self.flat
    }

    pub fn moments(&self) -> Moments {
        self.arithmetic.moments()
    }

    /// Adds the gradient of a pass, whose targets are the `drawn` tokens, to that of the step. What the objective says of each.
    pub fn learn(&mut self, batch: &Batch, loss: Loss, drawn: &[Drawn]) -> Vec<Terms> {
        let mut terms = Vec::with_capacity(drawn.len());
        self.arithmetic.minimise(&self.network, batch, &mut self.gradient, &mut |place, row| {
            terms.push(loss.differentiate(row, &drawn[place]));
        });
        terms
    }

    /// Applies the gradient of the passes since the last step, unless it is not finite. Its norm.
    pub fn step(&mut self, rate: f64) -> f64 {
        self.gradient.take(&self.layout, &mut self.flat_gradient);
        let norm = rows::squares(&self.flat_gradient).sqrt();
        if norm.is_finite() {
            let (flat, gradient) = (&mut self.flat, &mut self.flat_gradient);
            self.arithmetic.update(&self.layout, flat, gradient, norm.max(NORM_MIN), rate);
        }
        norm
    }

    /// ln π_ref of each of the batch's targets.
    pub fn reference(&mut self, batch: &Batch, temperature: f32) -> Vec<f32> {
        let mut logprobs = Vec::with_capacity(batch.targets.len());
        self.arithmetic.each_logits_of_reference(&self.network, batch, &mut |place, row| {
            logprobs.push(objective::policy(row, temperature, batch.targets[place].token));
        });
        logprobs
    }

    /// The hidden state at each of the batch's targets, [targets, d_model].
    pub fn features(&mut self, batch: &Batch) -> Vec<f32> {
        self.arithmetic.features(&self.network, batch)
    }
}

/// Of a gradient that is zero everywhere.
const NORM_MIN: f64 = 1e-12;
