//! The network: products of bf16 or f32 values with f32 sums, everything else in f32, with
//! gradients written by hand. Samples of a batch follow one another without padding, and the
//! operands that a gradient needs are kept in the type that products take.

mod attention;
mod backward;
mod forward;
mod rotation;
#[cfg(test)]
pub(crate) mod tests;
mod weights;

use prime_kernels::{Element, Packed, padded};

pub use rotation::Rotation;
pub use weights::{Matrix, ModelWeights, Weights};

use super::batch::Batch;
use super::layout::Layout;
use super::recipe::Architecture;

pub const NORM_EPSILON: f32 = 1e-5;

/// Number of rows after the last one that a product of attention may read, because it works on
/// whole blocks from a sample's first row on.
const SLACK: usize = prime_kernels::BLOCK;

/// For each target, the cross entropy in nats, and true if the most likely token is the right one.
#[derive(Default)]
pub struct Scores {
    pub losses: Vec<f32>,
    pub hits: Vec<bool>,
}

impl Scores {
    fn with_capacity(count: usize) -> Self {
        Self { losses: Vec::with_capacity(count), hits: Vec::with_capacity(count) }
    }

    fn push(&mut self, (loss, is_hit): (f32, bool)) {
        self.losses.push(loss);
        self.hits.push(is_hit);
    }
}

/// The shape of the network and its constants. The weights that are passed in determine the type
/// that products multiply.
#[derive(Clone)]
pub struct Network {
    layout: Layout,
    rotation: Rotation,
}

impl Network {
    /// Creates the network of this layout.
    ///
    /// # Panics
    /// If the architecture is not [supported](Architecture::is_supported).
    pub fn new(layout: &Layout) -> Self {
        let architecture = layout.architecture;
        assert!(architecture.is_supported(), "a recipe with another architecture is refused");
        Self {
            rotation: Rotation::new(architecture.context, architecture.head_dim()),
            layout: layout.clone(),
        }
    }

    /// Losses and hits at the batch's targets.
    pub fn score<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
    ) -> Scores {
        let mut scores = Scores::with_capacity(batch.targets.len());
        self.each_logits(weights, batch, workspace, |place, row| {
            scores.push(forward::cross_entropy(row, batch.targets[place].token));
        });
        scores
    }

    /// Like [`score`](Self::score), and adds the gradient of `weight` times the summed losses to
    /// `gradient`.
    pub fn learn<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        weight: f32,
        workspace: &mut Workspace<E>,
        gradient: &mut Gradient,
    ) -> Scores {
        let mut scores = Scores::with_capacity(batch.targets.len());
        self.minimise(weights, batch, workspace, gradient, |place, row| {
            let token = batch.targets[place].token;
            scores.push(forward::cross_entropy(row, token));
            // The gradient of the cross entropy by the logits: probabilities less the target's 1.
            row.iter_mut().for_each(|p| *p *= weight);
            row[usize::from(token)] -= weight;
        });
        scores
    }

    /// Like [`learn`](Self::learn), with the caller's losses: `slope` is called with the index of
    /// each target and its logits [vocabulary], which it replaces by the gradient of the sum of the
    /// losses.
    pub fn minimise<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
        gradient: &mut Gradient,
        slope: impl FnMut(usize, &mut [f32]),
    ) {
        self.forward(weights, batch, workspace);
        self.differentiate(batch, workspace, slope);
        self.backward(weights, batch, workspace, gradient);
    }

    /// Calls `see` with the index of each target and its logits [vocabulary], which it may change.
    pub fn each_logits<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
        mut see: impl FnMut(usize, &mut [f32]),
    ) {
        self.forward(weights, batch, workspace);
        let rows =
            workspace.logits.chunks_exact_mut(padded(self.layout.tokens)).take(batch.targets.len());
        rows.enumerate().for_each(|(place, row)| see(place, &mut row[..self.layout.tokens]));
    }

    /// The normed last hidden state at each target, [targets, d_model].
    pub fn features<E: Element>(
        &self,
        weights: &Weights<E>,
        batch: &Batch,
        workspace: &mut Workspace<E>,
    ) -> Vec<f32> {
        self.forward(weights, batch, workspace);
        let width = self.layout.architecture.d_model;
        workspace.normed[..batch.targets.len() * width]
            .iter()
            .map(|element| element.to_f32())
            .collect()
    }
}

/// A layer's intermediate results, kept by the forward pass for the gradient.
#[derive(Default)]
struct Kept<E> {
    /// The stream that enters [rows, d], and its norm.
    input: Vec<f32>,
    normed: Vec<E>,
    /// Rotated queries, scaled, rotated keys and values [rows, 3 d].
    qkv: Vec<E>,
    /// Probabilities of each head of each sample [blocks of queries, blocks of keys], one after
    /// another.
    probabilities: Vec<E>,
    /// The heads' outputs. In the last layer, these and the fields below have the targets' rows
    /// only.
    mixed: Vec<E>,
    middle: Vec<f32>,
    ff_normed: Vec<E>,
    gate_up: Vec<E>,
    hidden: Vec<E>,
}

/// The buffers of a pass, kept for the next one.
#[derive(Default)]
pub struct Workspace<E: Element> {
    layers: Vec<Kept<E>>,
    /// The stream after the last layer [targets, d], and its norm.
    output: Vec<f32>,
    normed: Vec<E>,
    /// [targets, padded vocabulary]
    logits: Vec<f32>,
    /// The gradient by the logits.
    slopes: Vec<E>,
    scratch: Scratch<E>,
}

/// Buffers whose contents are used within one operation.
#[derive(Default)]
struct Scratch<E: Element> {
    sums: Vec<f32>,
    more: Vec<f32>,
    scores: Vec<f32>,
    elements: Vec<E>,
    turned: Vec<E>,
    left: Vec<E>,
    packed: Packed<E>,
    other: Packed<E>,
}

/// A gradient that is being accumulated. Matrices whose input is narrower than their output are
/// held as their transposes.
pub struct Gradient {
    /// Laid out like the weights: norm gains, output projections of attention and of the
    /// feed-forward, and the embedding as the network's input. The rest is 0.
    flat: Vec<f32>,
    /// [d, padded vocabulary]
    logits: Vec<f32>,
    layers: Vec<Turned>,
}

struct Turned {
    /// [d, 3 d]
    qkv: Vec<f32>,
    /// [d, 2 ff]
    gate_up: Vec<f32>,
}

impl Gradient {
    pub fn new(layout: &Layout) -> Self {
        let Architecture { d_model, layers, ff, .. } = layout.architecture;
        let turned = |_| Turned {
            qkv: vec![0.0; 3 * d_model * d_model],
            gate_up: vec![0.0; 2 * ff * d_model],
        };
        Self {
            flat: vec![0.0; layout.len],
            logits: vec![0.0; d_model * padded(layout.tokens)],
            layers: (0..layers).map(turned).collect(),
        }
    }

    pub fn clear(&mut self) {
        self.flat.fill(0.0);
        self.logits.fill(0.0);
        for layer in &mut self.layers {
            layer.qkv.fill(0.0);
            layer.gate_up.fill(0.0);
        }
    }

    /// Adds another thread's gradient.
    pub fn add(&mut self, other: &Self) {
        let add =
            |sum: &mut [f32], addend: &[f32]| prime_kernels::rows::add_scaled(sum, addend, 1.0);
        add(&mut self.flat, &other.flat);
        add(&mut self.logits, &other.logits);
        for (sum, addend) in self.layers.iter_mut().zip(&other.layers) {
            add(&mut sum.qkv, &addend.qkv);
            add(&mut sum.gate_up, &addend.gate_up);
        }
    }

    /// Moves the gradient to `flat`, which is laid out like the weights.
    pub fn take(&mut self, layout: &Layout, flat: &mut [f32]) {
        let Architecture { d_model, ff, .. } = layout.architecture;
        flat.copy_from_slice(&self.flat);

        let turn = |from: &[f32], stride: usize, rows: usize, to: &mut [f32]| {
            for (row, to) in to.chunks_exact_mut(d_model).take(rows).enumerate() {
                for (to, from) in to.iter_mut().zip(from[row..].iter().step_by(stride)) {
                    *to += from;
                }
            }
        };

        turn(
            &self.logits,
            padded(layout.tokens),
            layout.tokens,
            &mut flat[layout.embedding.clone()],
        );

        for (spans, layer) in layout.layers.iter().zip(&self.layers) {
            turn(&layer.qkv, 3 * d_model, 3 * d_model, &mut flat[spans.qkv.clone()]);
            turn(&layer.gate_up, 2 * ff, 2 * ff, &mut flat[spans.gate_up.clone()]);
        }
        self.clear();
    }
}

/// The first `length` elements of a buffer, which grows if necessary. New elements are zero, others
/// keep their values.
pub fn sized<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) -> &mut [T] {
    if buffer.len() < length {
        buffer.resize(length, T::default());
    }
    &mut buffer[..length]
}
