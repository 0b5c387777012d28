//! The weights in the two forms in which products take them: forwards, and back.

use prime_kernels::{Left, Mode, Packed, Unit, narrow_into, padded};

use crate::layout::Layout;
use crate::model_view::Matrix;
use crate::recipe::Architecture;

/// A projection: y = x Wᵀ.
#[derive(Default, Clone)]
pub(super) struct Projection {
    /// [in, out]
    pub forward: Packed,
    /// [out, in], for the gradient by x
    pub backward: Packed,
}

impl Projection {
    /// `values` [out, in] are rounded.
    fn prepare(&mut self, values: &[f32], inner: usize, halves: &mut Vec<u16>) {
        let outer = padded(values.len() / inner);
        halves.clear();
        halves.resize(outer * inner, 0);
        narrow_into(values, halves);
        self.forward.pack_transposed(halves, inner, inner, outer);
        self.backward.pack(halves, inner, outer, inner);
    }
}

#[derive(Default, Clone)]
pub(super) struct LayerWeights {
    pub attention_norm: Vec<f32>,
    pub qkv: Projection,
    pub output: Projection,
    pub ff_norm: Vec<f32>,
    pub gate_up: Projection,
    pub down: Projection,
}

/// All weights of a network, as of one optimizer step.
#[derive(Default, Clone)]
pub struct Weights {
    /// [vocabulary, d]
    pub(super) embedding: Vec<f32>,
    pub(super) logits: Projection,
    pub(super) layers: Vec<LayerWeights>,
    pub(super) output_norm: Vec<f32>,
    halves: Vec<u16>,
}

impl Weights {
    /// Takes over the weights of a flat vector.
    pub fn prepare(&mut self, layout: &Layout, flat: &[f32]) {
        let Architecture { d_model, ff, .. } = layout.architecture;
        let copy = |to: &mut Vec<f32>, from: &[f32]| {
            to.clear();
            to.extend_from_slice(from);
        };
        copy(&mut self.embedding, &flat[layout.embedding.clone()]);
        copy(&mut self.output_norm, &flat[layout.output_norm.clone()]);
        self.logits.prepare(&flat[layout.embedding.clone()], d_model, &mut self.halves);
        self.layers.resize_with(layout.layers.len(), LayerWeights::default);
        for (layer, spans) in self.layers.iter_mut().zip(&layout.layers) {
            copy(&mut layer.attention_norm, &flat[spans.attention_norm.clone()]);
            copy(&mut layer.ff_norm, &flat[spans.ff_norm.clone()]);
            layer.qkv.prepare(&flat[spans.qkv.clone()], d_model, &mut self.halves);
            layer.output.prepare(&flat[spans.attention_output.clone()], d_model, &mut self.halves);
            layer.gate_up.prepare(&flat[spans.gate_up.clone()], d_model, &mut self.halves);
            layer.down.prepare(&flat[spans.down.clone()], ff, &mut self.halves);
        }
    }

    pub fn embedding(&self) -> &[f32] {
        &self.embedding
    }

    /// Those of attention and of the feed-forward.
    pub fn norms(&self, layer: usize) -> [&[f32]; 2] {
        [&self.layers[layer].attention_norm, &self.layers[layer].ff_norm]
    }

    pub fn output_norm(&self) -> &[f32] {
        &self.output_norm
    }

    /// Rows [n, in] projected by a matrix, [n, out]; logits without those of padding.
    pub fn project(&self, matrix: Matrix, rows: &[f32], vocabulary: usize) -> Vec<f32> {
        let right = match matrix {
            Matrix::Qkv(layer) => &self.layers[layer].qkv.forward,
            Matrix::Output(layer) => &self.layers[layer].output.forward,
            Matrix::GateUp(layer) => &self.layers[layer].gate_up.forward,
            Matrix::Down(layer) => &self.layers[layer].down.forward,
            Matrix::Logits => &self.logits.forward,
        };
        let (inner, width) = (right.inner(), right.columns());
        let count = rows.len() / inner;
        let unit = Unit::best();
        let padded = unit.padded_rows(count);
        let mut halves = vec![0; padded * inner];
        narrow_into(rows, &mut halves);
        let mut sums = vec![0.0; padded * width];
        let left = Left { values: &halves, stride: inner, rows: padded, inner };
        unit.multiply(left, right, width, &mut sums, width, Mode::Replace);
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
