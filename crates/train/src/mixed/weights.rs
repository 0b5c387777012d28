//! The weights in the two forms in which products take them: forwards, and back.

use prime_kernels::{Packed, narrow_into, padded};

use crate::layout::Layout;
use crate::recipe::Architecture;

/// A projection: y = x Wᵀ.
#[derive(Default)]
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

#[derive(Default)]
pub(super) struct LayerWeights {
    pub attention_norm: Vec<f32>,
    pub qkv: Projection,
    pub output: Projection,
    pub ff_norm: Vec<f32>,
    pub gate_up: Projection,
    pub down: Projection,
}

/// All weights of a network, as of one optimizer step.
#[derive(Default)]
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
}
