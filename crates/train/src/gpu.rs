//! Losses and gradients on a GPU (`prime-cuda`); updates stay with the processor.

use prime_cuda::{Input, LayerStarts, Network, Shape, Starts};

use super::TrainError;
use super::batch::Batch;
use super::layout::Layout;
use super::model::Scores;
use super::ops::Rotation;

pub struct GpuNetwork(Network);

impl GpuNetwork {
    /// The network on the GPU of this number.
    ///
    /// # Errors
    /// If there is no such GPU, or the architecture is none that its kernels can compute.
    pub fn new(layout: &Layout, ordinal: usize) -> Result<Self, TrainError> {
        let architecture = layout.architecture;
        let rotation = Rotation::new(architecture.context, architecture.head_dim());
        let layers = layout.layers.iter().map(|spans| LayerStarts {
            attention_norm: spans.attention_norm.start,
            qkv: spans.qkv.start,
            attention_output: spans.attention_output.start,
            ff_norm: spans.ff_norm.start,
            gate_up: spans.gate_up.start,
            down: spans.down.start,
        });
        let starts = Starts {
            embedding: layout.embedding.start,
            layers: layers.collect(),
            output_norm: layout.output_norm.start,
            len: layout.len,
        };
        let shape = Shape {
            d_model: architecture.d_model,
            heads: architecture.heads,
            ff: architecture.ff,
            tokens: layout.tokens,
            angles: (0..architecture.context).flat_map(|position| rotation.angles(position).to_vec()).collect(),
            starts,
        };
        Ok(Self(Network::new(shape, ordinal)?))
    }

    /// What the GPU is called.
    pub fn device_name(&self) -> Result<String, TrainError> {
        Ok(self.0.device_name()?)
    }

    pub fn set_weights(&mut self, flat: &[f32]) -> Result<(), TrainError> {
        Ok(self.0.set_weights(flat)?)
    }

    pub fn score(&mut self, batch: &Batch) -> Result<Scores, TrainError> {
        let (lengths, targets) = shape_of(batch);
        let input = Input { tokens: &batch.inputs, lengths: &lengths, targets: &targets };
        let (losses, hits) = self.0.score(input)?;
        Ok(Scores { losses, hits })
    }

    /// As `score`; the gradient of `weight` times the summed losses is added to the one under way.
    pub fn learn(&mut self, batch: &Batch, weight: f32) -> Result<Scores, TrainError> {
        let (lengths, targets) = shape_of(batch);
        let input = Input { tokens: &batch.inputs, lengths: &lengths, targets: &targets };
        let (losses, hits) = self.0.learn(input, weight)?;
        Ok(Scores { losses, hits })
    }

    /// Moves the gradient to `flat`, and begins anew.
    pub fn take_gradient(&mut self, flat: &mut [f32]) -> Result<(), TrainError> {
        Ok(self.0.take_gradient(flat)?)
    }
}

fn shape_of(batch: &Batch) -> (Vec<usize>, Vec<(usize, u16)>) {
    let lengths = batch.sequences.iter().map(|sequence| sequence.rows.len()).collect();
    (lengths, batch.targets.iter().map(|target| (target.row, target.token)).collect())
}
