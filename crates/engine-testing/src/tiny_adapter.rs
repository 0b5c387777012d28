//! Writes random LoRA adapters of tiny models.

use std::io;
use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::TinyModel;
use super::gguf_file::{Fill, NewTensor, Value, write_file};

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
    /// Value of `prime_agents.prompt`, if it has one.
    pub prompt: Option<Value>,
}

impl Default for TinyAdapter {
    fn default() -> Self {
        Self {
            rank: 4,
            alpha: 8.0,
            seed: 1,
            kind: "adapter".to_owned(),
            architecture: "llama".to_owned(),
            prompt: None,
        }
    }
}

impl TinyAdapter {
    /// Writes the adapter for a model as a GGUF file.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write(&self, model: &TinyModel, path: &Path) -> io::Result<()> {
        let text = |key: &str, value: &str| (key.to_owned(), Value::Text(value.to_owned()));
        let mut meta = vec![
            text("general.architecture", &self.architecture),
            text("general.type", &self.kind),
            text("general.name", "tiny random adapter"),
            text("adapter.type", "lora"),
            ("adapter.lora.alpha".to_owned(), Value::Real(self.alpha)),
        ];
        let prompt = self.prompt.clone().map(|prompt| ("prime_agents.prompt".to_owned(), prompt));
        meta.extend(prompt);
        write_file(path, &meta, &self.halves(model), self.seed)
    }

    /// Both halves of each adapted matrix.
    fn halves(&self, model: &TinyModel) -> Vec<NewTensor> {
        let is_adapted = |tensor: &NewTensor| {
            ["attn_q.weight", "attn_v.weight", "ffn_down.weight"]
                .iter()
                .any(|part| tensor.name().ends_with(part))
        };
        let adapted = model.tensors().into_iter().filter(is_adapted);
        let halves = adapted.flat_map(|tensor| {
            let (inputs, outputs) = (tensor.shape()[0], tensor.shape()[1]);
            let half = |end: &str, shape: &[u32], fill| {
                NewTensor::new(&format!("{}.lora_{end}", tensor.name()), shape, fill)
            };
            // Large enough to change what a random model says.
            [
                half("a", &[inputs, self.rank], tensor.fill()),
                half("b", &[self.rank, outputs], Fill::Normal(1.0)),
            ]
        });
        halves.collect()
    }

    /// Adds the adapter to the weights of a tensor, if it changes that.
    pub(super) fn merge(&self, model: &TinyModel, name: &str, weights: &mut [f32], scale: f32) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let halves: Vec<_> =
            self.halves(model).into_iter().map(|half| (half.draw(&mut rng), half)).collect();
        let values = |end: &str| {
            let wanted = format!("{name}.lora_{end}");
            halves.iter().find(|(_, half)| half.name() == wanted).map(|(values, _)| values)
        };
        let (Some(a), Some(b)) = (values("a"), values("b")) else { return };

        let rank = self.rank as usize;
        let inputs = a.len() / rank;
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
