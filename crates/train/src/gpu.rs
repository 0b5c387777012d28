//! Training on a GPU (`prime-cuda`): weights, gradients and the optimizer's moments stay there.

use prime_cuda::{GpuError, Input, LayerStarts, Network, Rule, Shape, Starts, Tensor};

use super::TrainError;
use super::batch::{Batch, Sequence};
use super::layout::Layout;
use super::network::{Rotation, Scores};
use super::optimizer::Moments;
use super::recipe::{MatrixOptimizer, Optimizer};

pub struct GpuNetwork(Network);

impl GpuNetwork {
    /// Creates the network on the GPU of this number.
    ///
    /// # Errors
    /// If there is no such GPU, or the kernels cannot compute this architecture.
    pub fn new(layout: &Layout, optimizer: &Optimizer, ordinal: usize) -> Result<Self, TrainError> {
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
            angles: (0..architecture.context)
                .flat_map(|position| rotation.angles(position).to_vec())
                .collect(),
            starts,
        };

        let part = |part: super::layout::Part| Tensor {
            start: part.start,
            rows: part.rows,
            columns: part.columns,
        };
        let tensors: Vec<_> = layout.parts().into_iter().map(part).collect();

        let rule = Rule {
            is_muon: optimizer.matrices == MatrixOptimizer::Muon,
            beta1: optimizer.beta1,
            beta2: optimizer.beta2,
            weight_decay: optimizer.weight_decay,
            clip_norm: optimizer.clip_norm,
        };

        Ok(Self(Network::new(shape, &tensors, rule, ordinal)?))
    }

    pub fn set_weights(&mut self, flat: &[f32]) -> Result<(), TrainError> {
        Ok(self.0.set_weights(flat)?)
    }

    pub fn score(&mut self, batch: &Batch) -> Result<Scores, TrainError> {
        scores(batch, |input| self.0.score(input))
    }

    /// Like `score`, and adds the gradient of `weight` times the summed losses to the accumulated
    /// one.
    pub fn learn(&mut self, batch: &Batch, weight: f32) -> Result<Scores, TrainError> {
        scores(batch, |input| self.0.learn(input, weight))
    }

    /// Calls `slope` with the index of each target and its logits, which it replaces by the
    /// gradient of the sum of the losses.
    pub fn minimise(
        &mut self,
        batch: &Batch,
        slope: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        on_input(batch, |input| self.0.minimise(input, slope))
    }

    /// Calls `see` with the index of each target and its logits.
    pub fn each_logits(
        &mut self,
        batch: &Batch,
        see: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), TrainError> {
        on_input(batch, |input| self.0.each_logits(input, see))
    }

    /// The normed last hidden state at each target, [targets, d_model].
    pub fn features(&mut self, batch: &Batch) -> Result<Vec<f32>, TrainError> {
        on_input(batch, |input| self.0.features(input))
    }

    /// Norm of the accumulated gradient.
    pub fn gradient_norm(&mut self) -> Result<f64, TrainError> {
        Ok(self.0.gradient_norm()?)
    }

    /// Makes the `step`-th update by the gradient, whose norm is `norm`, and moves the running
    /// average to the weights by `share` of the difference.
    pub fn update(
        &mut self,
        step: u64,
        norm: f64,
        rate: f64,
        share: f64,
    ) -> Result<(), TrainError> {
        Ok(self.0.update(step, norm, rate, share)?)
    }

    /// Sets the weights, their running average and the moments.
    pub fn set_state(
        &mut self,
        flat: &[f32],
        average: &[f32],
        moments: &Moments,
    ) -> Result<(), TrainError> {
        self.0.set_weights(flat)?;
        Ok(self.0.set_state([average, &moments.first, &moments.second])?)
    }

    /// Weights, their running average and moments.
    pub fn state(&mut self) -> Result<(Vec<f32>, Vec<f32>, Moments), TrainError> {
        let [flat, average, first, second] = self.0.state()?;
        Ok((flat, average, Moments { first, second }))
    }

    /// Exchanges the weights for their running average, or back.
    pub fn exchange_average(&mut self) -> Result<(), TrainError> {
        Ok(self.0.exchange_average()?)
    }

    /// Moves the accumulated gradient to `flat`.
    #[cfg(test)]
    pub fn take_gradient(&mut self, flat: &mut [f32]) -> Result<(), TrainError> {
        Ok(self.0.take_gradient(flat)?)
    }
}

fn scores(
    batch: &Batch,
    pass: impl FnOnce(Input<'_>) -> Result<prime_cuda::Scores, GpuError>,
) -> Result<Scores, TrainError> {
    let (losses, hits) = on_input(batch, pass)?;
    Ok(Scores { losses, hits })
}

fn on_input<T>(
    batch: &Batch,
    pass: impl FnOnce(Input<'_>) -> Result<T, GpuError>,
) -> Result<T, TrainError> {
    assert!(
        batch.sequences.iter().all(Sequence::has_one_completion),
        "only a processor learns from groups"
    );

    let lengths: Vec<_> = batch.sequences.iter().map(|sequence| sequence.rows.len()).collect();
    let targets: Vec<_> = batch.targets.iter().map(|target| (target.row, target.token)).collect();
    Ok(pass(Input { tokens: &batch.inputs, lengths: &lengths, targets: &targets })?)
}
