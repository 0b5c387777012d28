//! Updates on a GPU: the networks' passes run there, while the objective is differentiated on the
//! processor.

use super::arithmetic::{Arithmetic, NORM_MIN};
use crate::TrainError;
use crate::batch::Batch;
use crate::gpu::GpuNetwork;
use crate::layout::Layout;
use crate::optimizer::Moments;
use crate::recipe::Optimizer;

/// The policy and its reference, both on the GPU.
pub struct OnGpu {
    network: GpuNetwork,
    reference: GpuNetwork,
    steps: u64,
}

impl OnGpu {
    /// Continues after `steps` updates on the GPU of this number.
    ///
    /// # Errors
    /// If there is no such GPU, or the kernels cannot compute this architecture.
    pub fn new(
        ordinal: usize,
        optimizer: &Optimizer,
        layout: &Layout,
        [flat, initial]: [&[f32]; 2],
        moments: &Moments,
        steps: u64,
    ) -> Result<Self, TrainError> {
        let mut network = GpuNetwork::new(layout, optimizer, ordinal)?;
        network.set_state(flat, flat, moments)?;

        let mut reference = GpuNetwork::new(layout, optimizer, ordinal)?;
        reference.set_weights(initial)?;
        Ok(Self { network, reference, steps })
    }
}

impl Arithmetic for OnGpu {
    fn minimise(
        &mut self,
        batch: &Batch,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        self.network.minimise(batch, slope)
    }

    fn each_logits_of_reference(
        &mut self,
        batch: &Batch,
        see: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        self.reference.each_logits(batch, see)
    }

    fn features(&mut self, batch: &Batch) -> Result<Vec<f32>, TrainError> {
        self.network.features(batch)
    }

    fn step(&mut self, rate: f64) -> Result<f64, TrainError> {
        let norm = self.network.gradient_norm()?;
        if norm.is_finite() {
            self.steps += 1;
            // With a share of 1, the running average equals the weights: none is kept.
            self.network.update(self.steps, norm.max(NORM_MIN), rate, 1.0)?;
        }
        Ok(norm)
    }

    fn state(&mut self) -> Result<(Vec<f32>, Moments), TrainError> {
        let (flat, _, moments) = self.network.state()?;
        Ok((flat, moments))
    }

    fn shares_prompts(&self) -> bool {
        false
    }
}
