//! The decoder's forward pass on burn tensors, with gradients from burn's autodiff. Samples are padded to the longest of the
//! batch: attention is causal, so padding at the end affects no earlier position. Only supervised positions go through the
//! last feed-forward layer and the output projection.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{
    batch::{Batch, Sequence, Target},
    layout::{Layout, Part},
    ops,
    recipe::Architecture,
    vocabulary::PAD,
};

pub const NORM_EPSILON: f32 = 1e-5;
/// Tensors per layer: attention norm; query, key, value, output; feed-forward norm; gate, up, down.
pub const LAYER_TENSORS: usize = 9;

/// Per target: cross entropy in nats, and whether the most likely token is the right one.
pub struct Scores {
    pub losses: Vec<f32>,
    pub hits: Vec<bool>,
}

/// The tensors of a flat vector, in the order of `Layout::parts`.
pub fn tensors(layout: &Layout, flat: &[f32], device: &Device) -> Vec<Tensor<2>> {
    let make = |part: Part| {
        let Part { rows, columns, .. } = part;
        let values = &flat[part.start..part.start + rows * columns];
        let (values, shape) = if part.transposed {
            (transpose(values, rows, columns), [columns, rows])
        } else {
            (values.to_vec(), [rows, columns])
        };
        Tensor::from_data(TensorData::new(values, shape), device)
    };
    layout.parts().into_iter().map(make).collect()
}

/// The inverse of `tensors`.
pub fn values(layout: &Layout, tensors: &[Tensor<2>]) -> Vec<f32> {
    let mut flat = vec![0.0; layout.len];
    for (part, tensor) in layout.parts().into_iter().zip(tensors) {
        let values = floats(tensor.clone());
        let values = if part.transposed { transpose(&values, part.columns, part.rows) } else { values };
        flat[part.start..part.start + values.len()].copy_from_slice(&values);
    }
    flat
}

fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|index| values[index % rows * columns + index / rows]).collect()
}

pub fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec::<f32>().expect("invariant: the network computes in f32")
}

/// The shape of the network and its constants; weights are passed in.
#[derive(Clone)]
pub struct Network {
    architecture: Architecture,
    rotation: ops::Rotation,
}

impl Network {
    pub fn new(architecture: Architecture) -> Self {
        Self { rotation: ops::Rotation::new(architecture.context, architecture.head_dim()), architecture }
    }

    /// Losses and hits at the batch's targets.
    pub fn score(&self, weights: &[Tensor<2>], batch: &Batch) -> Scores {
        let logits = self.logits(weights, batch);
        let hits = hits(batch, logits.clone());
        Scores { losses: floats(ops::cross_entropy(logits, tokens(batch))), hits }
    }

    /// As `score`, and the gradient of `weight` times the summed losses. `weights` are not on an autodiff device.
    pub fn learn(&self, weights: &[Tensor<2>], batch: &Batch, weight: f32) -> (Scores, Vec<Tensor<2>>) {
        let mut right = Vec::new();
        let (losses, gradients) = self.minimise(weights, batch, weight, |logits| {
            right = hits(batch, logits.clone().inner());
            ops::cross_entropy(logits, tokens(batch))
        });
        (Scores { losses, hits: right }, gradients)
    }

    /// The losses [targets] that `losses` makes of the logits [targets, vocabulary] at the batch's targets, and the gradient
    /// of `weight` times their sum. `weights` are not on an autodiff device.
    pub fn minimise(
        &self,
        weights: &[Tensor<2>],
        batch: &Batch,
        weight: f32,
        losses: impl FnOnce(Tensor<2>) -> Tensor<2>,
    ) -> (Vec<f32>, Vec<Tensor<2>>) {
        let leaves: Vec<Tensor<2>> = weights.iter().map(|tensor| tensor.clone().autodiff().require_grad()).collect();
        let losses = losses(self.logits(&leaves, batch));
        let values = floats(losses.clone().inner());
        let mut gradients = losses.sum().mul_scalar(weight).backward();
        let gradients = leaves
            .iter()
            .map(|leaf| leaf.grad_remove(&mut gradients).expect("invariant: every weight is used"))
            .collect();
        (values, gradients)
    }

    /// Logits [targets, vocabulary] at the batch's targets.
    pub fn logits(&self, weights: &[Tensor<2>], batch: &Batch) -> Tensor<2> {
        self.features(weights, batch).matmul(weights[0].clone().transpose())
    }

    /// The last hidden states [targets, d_model] at the batch's targets, from which the logits are projected.
    pub fn features(&self, weights: &[Tensor<2>], batch: &Batch) -> Tensor<2> {
        let Architecture { heads, layers, .. } = self.architecture;
        let head_dim = self.architecture.head_dim();
        assert!(batch.sequences.iter().all(Sequence::has_one_completion), "groups need mixed precision");
        let sequences = batch.sequences.len();
        let lengths = batch.sequences.iter().map(|s| s.rows.len());
        let length = lengths.max().unwrap_or(0);
        let rows = sequences * length;
        let device = weights[0].device();
        let mut ids = vec![i64::from(PAD); rows];
        let mut targets = Vec::with_capacity(batch.targets.len());
        for (index, sequence) in batch.sequences.iter().enumerate() {
            let start = index * length;
            for (id, &token) in ids[start..].iter_mut().zip(&batch.inputs[sequence.rows.clone()]) {
                *id = i64::from(token);
            }
            targets.extend(
                batch.targets[sequence.targets.clone()]
                    .iter()
                    .map(|target| (start + target.row - sequence.rows.start) as i64),
            );
        }
        let ids = integers(ids, &device);
        let targets = integers(targets, &device);
        let split = |x: Tensor<2>| x.reshape([sequences, length, heads, head_dim]).swap_dims(1, 2);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let embedding = &weights[0];
        let mut stream = embedding.clone().select(0, ids);
        for layer in 0..layers {
            let first = 1 + layer * LAYER_TENSORS;
            let [gain, query, key, value, output, ff_gain, gate, up, down] = weights[first..first + LAYER_TENSORS]
                .as_array()
                .expect("invariant: a layer has that many tensors")
                .clone();
            let x = ops::norm(stream.clone(), gain);
            let rotate = |x, scale| split(self.rotation.apply(x, length, scale));
            let queries = rotate(x.clone().matmul(query), scale);
            let keys = rotate(x.clone().matmul(key), 1.0);
            let probabilities = ops::causal_softmax(queries.matmul(keys.transpose()));
            let mixed = probabilities.matmul(split(x.matmul(value))).swap_dims(1, 2).reshape([rows, heads * head_dim]);
            let (mixed, input) = if layer + 1 == layers {
                (mixed.select(0, targets.clone()), stream.select(0, targets.clone()))
            } else {
                (mixed, stream)
            };
            let middle = input + mixed.matmul(output);
            let x = ops::norm(middle.clone(), ff_gain);
            let hidden = ops::swiglu(x.clone().matmul(gate), x.matmul(up));
            stream = middle + hidden.matmul(down);
        }
        let gain = weights[weights.len() - 1].clone();
        ops::norm(stream, gain)
    }
}

fn integers(values: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn tokens(batch: &Batch) -> Vec<u16> {
    batch.targets.iter().map(|target| target.token).collect()
}

/// Whether the target token has the largest logit, at each target.
fn hits(batch: &Batch, logits: Tensor<2>) -> Vec<bool> {
    let [_, vocabulary] = logits.dims();
    let right = |(row, target): (&[f32], &Target)| {
        let own = row[usize::from(target.token)];
        row.iter().map(|&logit| u32::from(logit >= own)).sum::<u32>() == 1
    };
    floats(logits).chunks_exact(vocabulary).zip(&batch.targets).map(right).collect()
}
