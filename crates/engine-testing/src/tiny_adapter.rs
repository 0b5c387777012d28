//! Writes random LoRA adapters of tiny models.

use std::io;
use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::TinyModel;
use super::tiny_model::{Value, draws, write_gguf};

/// A random adapter of the query, value and down projections of each layer.
#[derive(Debug, Clone)]
pub struct TinyAdapter {
    /// Rank of its matrices.
    pub rank: u32,
    /// The product is multiplied by `alpha` and divided by the rank.
    pub alpha: f32,
    /// Seed of its weights.
    pub seed: u64,
    /// Value of `general.type`.
    pub kind: String,
    /// Value of `general.architecture`.
    pub architecture: String,
}

impl Default for TinyAdapter {
    fn default() -> Self {
        Self {
            rank: 4,
            alpha: 8.0,
            seed: 1,
            kind: "adapter".to_owned(),
            architecture: "llama".to_owned(),
        }
    }
}

/// One half of a matrix's adapter: name, shape (fastest dimension first), values.
type Half = (String, Vec<u32>, Vec<f32>);

impl TinyAdapter {
    /// Writes the adapter for a model as a GGUF file.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write(&self, model: &TinyModel, path: &Path) -> io::Result<()> {
        let halves = self.halves(model);
        let places: Vec<_> =
            halves.iter().map(|(name, shape, _)| (name.clone(), shape.clone())).collect();
        let text = |key: &str, value: &str| (key.to_owned(), Value::Text(value.to_owned()));
        let meta = [
            text("general.architecture", &self.architecture),
            text("general.type", &self.kind),
            text("general.name", "tiny random adapter"),
            text("adapter.type", "lora"),
            ("adapter.lora.alpha".to_owned(), Value::Real(self.alpha)),
        ];
        write_gguf(path, &meta, &places, halves.into_iter())
    }

    fn halves(&self, model: &TinyModel) -> Vec<Half> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let is_adapted = |name: &str| {
            ["attn_q.weight", "attn_v.weight", "ffn_down.weight"]
                .iter()
                .any(|part| name.ends_with(part))
        };
        let adapted = model.tensors().into_iter().filter(|(name, ..)| is_adapted(name));
        let halves = adapted.flat_map(|(name, shape, scale)| {
            let (inputs, outputs) = (shape[0], shape[1]);
            let mut half = |end: &str, shape: Vec<u32>, scale: f32| {
                let values = draws(&mut rng, &shape, scale);
                (format!("{name}.lora_{end}"), shape, values)
            };
            // Large enough to change what a random model says.
            [half("a", vec![inputs, self.rank], scale), half("b", vec![self.rank, outputs], 1.0)]
        });
        halves.collect()
    }

    /// Adds the adapter to the weights of a tensor, if it changes that.
    pub(super) fn merge(&self, model: &TinyModel, name: &str, weights: &mut [f32], scale: f32) {
        let halves = self.halves(model);
        let half = |end: &str| halves.iter().find(|(of, ..)| *of == format!("{name}.lora_{end}"));
        let (Some((_, shape, a)), Some((_, _, b))) = (half("a"), half("b")) else { return };

        let (inputs, rank) = (shape[0] as usize, shape[1] as usize);
        let factor = scale * self.alpha / self.rank as f32;
        for (row, weights) in weights.chunks_exact_mut(inputs).enumerate() {
            for (column, weight) in weights.iter_mut().enumerate() {
                let product: f32 =
                    (0..rank).map(|at| b[row * rank + at] * a[at * inputs + column]).sum();
                *weight += factor * product;
            }
        }
    }
}
