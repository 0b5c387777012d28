//! The weights in the two forms that products take: for the forward pass, and for the gradient.

use prime_kernels::{Element, Mode, Packed, padded, round_into};

use super::forward::product;
use crate::layout::Layout;
use crate::recipe::Architecture;

/// A matrix of the network; those within the layers name their layer.
#[derive(Debug, Clone, Copy)]
pub enum Matrix {
    /// Queries, keys and values of a row, one after another.
    Qkv(usize),
    Output(usize),
    /// Gates, then ups of a row.
    GateUp(usize),
    Down(usize),
    Logits,
}

/// Weights as a decoder reads them, whatever type products multiply.
pub trait ModelWeights: Sync {
    /// [vocabulary, d]
    fn embedding(&self) -> &[f32];

    /// Gains of the norms before attention and before the feed-forward.
    fn norms(&self, layer: usize) -> [&[f32]; 2];

    fn output_norm(&self) -> &[f32];

    /// Projects rows [n, in] by a matrix to [n, out]; logits without those of padding.
    fn project(&self, matrix: Matrix, rows: &[f32], vocabulary: usize) -> Vec<f32>;
}

/// A projection: y = x Wᵀ.
#[derive(Default, Clone)]
pub(super) struct Projection<E: Element> {
    /// [in, out]
    pub forward: Packed<E>,
    /// [out, in], for the gradient by x
    pub backward: Packed<E>,
}

impl<E: Element> Projection<E> {
    /// Rounds and packs `values` [out, in].
    fn prepare(&mut self, values: &[f32], inner: usize, elements: &mut Vec<E>) {
        let outer = padded(values.len() / inner);
        elements.clear();
        elements.resize(outer * inner, E::default());
        round_into(values, elements);

        self.forward.pack_transposed(elements, inner, inner, outer);
        self.backward.pack(elements, inner, outer, inner);
    }
}

#[derive(Default, Clone)]
pub(super) struct LayerWeights<E: Element> {
    pub attention_norm: Vec<f32>,
    pub qkv: Projection<E>,
    pub output: Projection<E>,
    pub ff_norm: Vec<f32>,
    pub gate_up: Projection<E>,
    pub down: Projection<E>,
}

/// All weights of a network, as of one optimizer step.
#[derive(Default, Clone)]
pub struct Weights<E: Element> {
    /// [vocabulary, d]
    pub(super) embedding: Vec<f32>,
    pub(super) logits: Projection<E>,
    pub(super) layers: Vec<LayerWeights<E>>,
    pub(super) output_norm: Vec<f32>,
    elements: Vec<E>,
}

impl<E: Element> Weights<E> {
    /// Rounds and packs the weights of a flat vector.
    pub fn prepare(&mut self, layout: &Layout, flat: &[f32]) {
        let Architecture { d_model, ff, .. } = layout.architecture;
        let copy = |to: &mut Vec<f32>, from: &[f32]| {
            to.clear();
            to.extend_from_slice(from);
        };

        copy(&mut self.embedding, &flat[layout.embedding.clone()]);
        copy(&mut self.output_norm, &flat[layout.output_norm.clone()]);
        self.logits.prepare(&flat[layout.embedding.clone()], d_model, &mut self.elements);

        self.layers.resize_with(layout.layers.len(), LayerWeights::default);
        for (layer, spans) in self.layers.iter_mut().zip(&layout.layers) {
            copy(&mut layer.attention_norm, &flat[spans.attention_norm.clone()]);
            copy(&mut layer.ff_norm, &flat[spans.ff_norm.clone()]);
            layer.qkv.prepare(&flat[spans.qkv.clone()], d_model, &mut self.elements);
            layer.output.prepare(
                &flat[spans.attention_output.clone()],
                d_model,
                &mut self.elements,
            );
            layer.gate_up.prepare(&flat[spans.gate_up.clone()], d_model, &mut self.elements);
            layer.down.prepare(&flat[spans.down.clone()], ff, &mut self.elements);
        }
    }

    /// The weights of a flat vector.
    pub fn of(layout: &Layout, flat: &[f32]) -> Self {
        let mut weights = Self::default();
        weights.prepare(layout, flat);
        weights
    }
}

impl<E: Element> ModelWeights for Weights<E> {
    fn embedding(&self) -> &[f32] {
        &self.embedding
    }

    fn norms(&self, layer: usize) -> [&[f32]; 2] {
        [&self.layers[layer].attention_norm, &self.layers[layer].ff_norm]
    }

    fn output_norm(&self) -> &[f32] {
        &self.output_norm
    }

    fn project(&self, matrix: Matrix, rows: &[f32], vocabulary: usize) -> Vec<f32> {
        let right = match matrix {
            Matrix::Qkv(layer) => &self.layers[layer].qkv.forward,
            Matrix::Output(layer) => &self.layers[layer].output.forward,
            Matrix::GateUp(layer) => &self.layers[layer].gate_up.forward,
            Matrix::Down(layer) => &self.layers[layer].down.forward,
            Matrix::Logits => &self.logits.forward,
        };

        let (inner, width) = (right.inner(), right.columns());
        let count = rows.len() / inner;
        let padded = E::padded_rows(count);
        let mut elements = vec![E::default(); padded * inner];
        round_into(rows, &mut elements);

        let mut sums = vec![0.0; padded * width];
        product(&elements, padded, right, &mut sums, Mode::Replace);
        // The vocabulary's padding is cut out of each row; the first one is in its place already.
        if let Matrix::Logits = matrix {
            for row in 1..count {
                sums.copy_within(row * width..row * width + vocabulary, row * vocabulary);
            }
            sums.truncate(count * vocabulary);
            return sums;
        }

        sums.truncate(count * width);
        sums
    }
}
