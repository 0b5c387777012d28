//! The decoder's forward pass on burn tensors; burn's autodiff makes the gradients. Samples of a batch are padded to
//! the longest: attention is causal, so padding at the end reaches no earlier position, and only supervised positions
//! go through the last feed-forward and the output projection.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::{
    batch::Batch,
    layout::{Layout, Part},
    ops,
    recipe::{Architecture, PAD},
};

pub const NORM_EPSILON: f32 = 1e-5;
/// Tensors per layer: attention norm; query, key, value, output; feed-forward norm; gate, up, down.
const LAYER_TENSORS: usize = 9;

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

/// The opposite of `tensors`.
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

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().into_vec().expect("invariant: the network computes in f32")
}

/// The shape of the network and its constants; weights are passed in.
#[derive(Clone)]
pub struct Network {
    architecture: Architecture,
    device: Device,
    /// Cosines and sines [context, d_model], and the same scaled for queries.
    angles: [Tensor<2>; 4],
    /// [head_dim, head_dim]: (x, y) to (-y, x) for each pair.
    quarter_turn: Tensor<2>,
    /// [context, context]: 0 where a query (row) sees a key (column), else very negative.
    mask: Tensor<2>,
}

impl Network {
    /// Constants live on `device`, which gradients need to be an autodiff device.
    pub fn new(architecture: Architecture, device: &Device) -> Self {
        let Architecture { d_model, context, .. } = architecture;
        let head_dim = architecture.head_dim();
        let scale = 1.0 / (head_dim as f64).sqrt();
        let table = |of: fn(f64) -> f64, scale: f64| {
            let cell = move |position: usize, column: usize| {
                let pair = column % head_dim / 2;
                let angle = position as f64 * 10_000f64.powf(-2.0 * pair as f64 / head_dim as f64);
                (of(angle) * scale) as f32
            };
            matrix(context, d_model, cell, device)
        };
        let turn = |row: usize, column: usize| match (row % 2, column) {
            (0, column) if column == row + 1 => 1.0,
            (1, column) if column + 1 == row => -1.0,
            _ => 0.0,
        };
        let mask = |query, key| if key <= query { 0.0 } else { -1e9 };
        Self {
            architecture,
            angles: [table(f64::cos, 1.0), table(f64::sin, 1.0), table(f64::cos, scale), table(f64::sin, scale)],
            quarter_turn: matrix(head_dim, head_dim, turn, device),
            mask: matrix(context, context, mask, device),
            device: device.clone(),
        }
    }

    /// Losses and hits at the batch's targets.
    pub fn score(&self, weights: &[Tensor<2>], batch: &Batch) -> Scores {
        let logits = self.logits(weights, batch);
        let losses = self.losses(logits.clone(), batch);
        scores(batch, logits, losses)
    }

    /// As `score`, and the gradient of `weight` times the summed losses. `weights` are not on an autodiff device.
    pub fn learn(&self, weights: &[Tensor<2>], batch: &Batch, weight: f32) -> (Scores, Vec<Tensor<2>>) {
        let leaves: Vec<Tensor<2>> = weights.iter().map(|tensor| tensor.clone().autodiff().require_grad()).collect();
        let logits = self.logits(&leaves, batch);
        let losses = self.losses(logits.clone(), batch);
        let scores = scores(batch, logits.inner(), losses.clone().inner());
        let mut gradients = losses.sum().mul_scalar(weight).backward();
        let gradients = leaves
            .iter()
            .map(|leaf| leaf.grad_remove(&mut gradients).expect("invariant: every weight is used"))
            .collect();
        (scores, gradients)
    }

    /// Cross entropies [targets, 1].
    fn losses(&self, logits: Tensor<2>, batch: &Batch) -> Tensor<2> {
        let tokens = batch.targets.iter().map(|target| i64::from(target.token));
        let tokens = self.integers(tokens, &logits.device());
        log_softmax(logits, 1).gather(1, tokens.unsqueeze_dim(1)).neg()
    }

    fn integers(&self, values: impl Iterator<Item = i64>, device: &Device) -> Tensor<1, Int> {
        let values: Vec<i64> = values.collect();
        let shape = [values.len()];
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// Logits [targets, vocabulary] at the batch's targets.
    pub fn logits(&self, weights: &[Tensor<2>], batch: &Batch) -> Tensor<2> {
        let Architecture { heads, layers, .. } = self.architecture;
        let head_dim = self.architecture.head_dim();
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
        let ids = self.integers(ids.into_iter(), &device);
        let targets = self.integers(targets.into_iter(), &device);
        let [cosine, sine, query_cosine, query_sine] =
            self.angles.clone().map(|table| table.slice([0..length]).unsqueeze_dim::<3>(0));
        let mask = self.mask.clone().slice([0..length, 0..length]).unsqueeze_dims::<4>(&[0, 0]);
        let split = |x: Tensor<2>| x.reshape([sequences, length, heads, head_dim]).swap_dims(1, 2);
        let ones = Tensor::<4>::ones([sequences, heads, length, 1], &device);

        let embedding = &weights[0];
        let mut stream = embedding.clone().select(0, ids);
        for layer in 0..layers {
            let first = 1 + layer * LAYER_TENSORS;
            let [gain, query, key, value, output, ff_gain, gate, up, down] = weights[first..first + LAYER_TENSORS]
                .as_array()
                .expect("invariant: a layer has that many tensors")
                .clone();
            let x = ops::norm(stream.clone(), gain);
            let queries = ops::rotate(x.clone().matmul(query), &query_cosine, &query_sine, &self.quarter_turn);
            let keys = ops::rotate(x.clone().matmul(key), &cosine, &sine, &self.quarter_turn);
            let values = Tensor::cat(vec![split(x.matmul(value)), ones.clone()], 3);
            // Unnormalised: the column of ones makes the sums to divide by, on few numbers instead of [length, length].
            let seen = (split(queries).matmul(split(keys).transpose()) + mask.clone()).exp();
            let mixed = seen.matmul(values);
            let sums = mixed.clone().narrow(3, head_dim, 1);
            let mixed = (mixed.narrow(3, 0, head_dim) / sums).swap_dims(1, 2).reshape([rows, heads * head_dim]);
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
        ops::norm(stream, gain).matmul(embedding.clone().transpose())
    }
}

fn matrix(rows: usize, columns: usize, cell: impl Fn(usize, usize) -> f32, device: &Device) -> Tensor<2> {
    let cells: Vec<f32> = (0..rows * columns).map(|index| cell(index / columns, index % columns)).collect();
    Tensor::from_data(TensorData::new(cells, [rows, columns]), device)
}

fn scores(batch: &Batch, logits: Tensor<2>, losses: Tensor<2>) -> Scores {
    let [_, vocabulary] = logits.dims();
    let logits = floats(logits);
    let right = |(row, target): (&[f32], &super::batch::Target)| {
        let own = row[usize::from(target.token)];
        row.iter().filter(|&&logit| logit >= own).count() == 1
    };
    Scores { losses: floats(losses), hits: logits.chunks_exact(vocabulary).zip(&batch.targets).map(right).collect() }
}
