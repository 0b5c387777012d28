//! Updates on the processor.

use prime_kernels::{Element, rows};

use super::arithmetic::{Arithmetic, NORM_MIN};
use crate::TrainError;
use crate::batch::Batch;
use crate::layout::Layout;
use crate::network::{Gradient, Network, Weights, Workspace};
use crate::optimizer::{Moments, Updater};
use crate::recipe::Optimizer;

/// Weights prepared for products, which multiply `E`, and their updater.
pub struct OnProcessor<E: Element> {
    layout: Layout,
    network: Network,
    flat: Vec<f32>,
    weights: Weights<E>,
    reference: Weights<E>,
    updater: Updater<E>,
    workspace: Workspace<E>,
    /// The sum of a step's passes.
    gradient: Gradient,
    flat_gradient: Vec<f32>,
}

impl<E: Element> OnProcessor<E> {
    pub fn new(
        optimizer: &Optimizer,
        layout: &Layout,
        [flat, initial]: [&[f32]; 2],
        moments: Moments,
        steps: u64,
    ) -> Self {
        Self {
            layout: layout.clone(),
            network: Network::new(layout),
            flat: flat.to_vec(),
            weights: Weights::of(layout, flat),
            reference: Weights::of(layout, initial),
            updater: Updater::new(optimizer, layout, moments, steps),
            workspace: Workspace::default(),
            gradient: Gradient::new(layout),
            flat_gradient: vec![0.0; layout.len],
        }
    }
}

impl<E: Element> Arithmetic for OnProcessor<E> {
    fn minimise(
        &mut self,
        batch: &Batch,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        self.network.minimise(&self.weights, batch, &mut self.workspace, &mut self.gradient, slope);
        Ok(())
    }

    fn each_logits_of_reference(
        &mut self,
        batch: &Batch,
        see: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        self.network.each_logits(&self.reference, batch, &mut self.workspace, see);
        Ok(())
    }

    fn features(&mut self, batch: &Batch) -> Result<Vec<f32>, TrainError> {
        Ok(self.network.features(&self.weights, batch, &mut self.workspace))
    }

    fn step(&mut self, rate: f64) -> Result<f64, TrainError> {
        self.gradient.take(&self.layout, &mut self.flat_gradient);
        let norm = rows::squares(&self.flat_gradient).sqrt();
        if norm.is_finite() {
            self.updater.update(&mut self.flat, &mut self.flat_gradient, norm.max(NORM_MIN), rate);
            self.weights.prepare(&self.layout, &self.flat);
        }
        Ok(norm)
    }

    fn state(&mut self) -> Result<(Vec<f32>, Moments), TrainError> {
        Ok((self.flat.clone(), self.updater.moments()))
    }

    fn shares_prompts(&self) -> bool {
        true
    }
}
