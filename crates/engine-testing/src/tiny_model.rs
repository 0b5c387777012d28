//! Writes tiny models with random weights, so that tests need no pretrained ones.
//!
//! A byte-level tokenizer (token id = byte value, then begin, end and padding) and the llama
//! architecture with untied f32 weights. Deliberately not the trainer's writer, whose exports tests
//! check with the engine.

use std::io;
use std::path::{Path, PathBuf};

use super::gguf_file::{
    Fill, NewTensor, VOCABULARY, Value, byte_tokenizer, write_changed, write_file, write_parts,
};
use super::tiny_adapter::TinyAdapter;

/// Size and seed of a random model.
#[derive(Debug, Clone, Copy)]
pub struct TinyModel {
    /// Width of the residual stream; a multiple of `heads`.
    pub width: u32,
    /// Number of layers.
    pub layers: u32,
    /// Attention heads.
    pub heads: u32,
    /// Width of the feed-forward part.
    pub hidden: u32,
    /// Trained context, in tokens.
    pub context: u32,
    /// Seed of the weights.
    pub seed: u64,
    /// Standard deviation of the output layer: a larger one makes distributions more peaked.
    pub output_scale: f32,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self {
            width: 64,
            layers: 2,
            heads: 4,
            hidden: 128,
            context: 4096,
            seed: 1,
            output_scale: 0.12,
        }
    }
}

impl TinyModel {
    /// About 1 M parameters, the size of the shipped models.
    pub const MILLION: Self = Self {
        width: 128,
        layers: 4,
        heads: 4,
        hidden: 384,
        context: 4096,
        seed: 1,
        output_scale: 0.12,
    };

    /// About 10 M parameters.
    pub const TEN_MILLION: Self = Self {
        width: 384,
        layers: 6,
        heads: 6,
        hidden: 1024,
        context: 4096,
        seed: 1,
        output_scale: 0.12,
    };

    /// About 300 M parameters, 1.2 GB: enough to be limited by a GPU's memory bandwidth.
    pub const LARGE: Self = Self {
        width: 1024,
        layers: 24,
        heads: 16,
        hidden: 2816,
        context: 4096,
        seed: 1,
        output_scale: 0.12,
    };

    /// Writes the model as a GGUF file.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        self.write_with(path, None)
    }

    /// Writes the model with a chat template.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write_with_template(&self, path: &Path, template: &str) -> io::Result<()> {
        self.write_with(path, Some(template))
    }

    /// Writes the model as several files, `NAME-00001-of-00003.gguf` and so on, and returns their
    /// paths.
    ///
    /// # Errors
    /// Those of creating and writing the files.
    pub fn write_split(&self, folder: &Path, name: &str, parts: usize) -> io::Result<Vec<PathBuf>> {
        let path = |part: usize| folder.join(format!("{name}-{part:05}-of-{parts:05}.gguf"));
        let paths: Vec<PathBuf> = (1..=parts).map(path).collect();
        write_parts(&paths, &self.metadata(), &self.tensors(), self.seed)?;
        Ok(paths)
    }

    /// Writes the model with an adapter merged into its weights.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write_merged(&self, path: &Path, adapter: &TinyAdapter, scale: f32) -> io::Result<()> {
        write_changed(path, &self.metadata(), &self.tensors(), self.seed, &|name, weights| {
            adapter.merge(self, name, weights, scale);
        })
    }

    fn write_with(&self, path: &Path, template: Option<&str>) -> io::Result<()> {
        let mut meta = self.metadata();
        let template = template.map(|text| Value::Text(text.to_owned()));
        meta.extend(template.map(|text| ("tokenizer.chat_template".to_owned(), text)));
        write_file(path, &meta, &self.tensors(), self.seed)
    }

    /// The tensors of the llama architecture.
    pub(super) fn tensors(&self) -> Vec<NewTensor> {
        let (d, f, v) = (self.width, self.hidden, VOCABULARY);
        let inner = 1.0 / (d as f32).sqrt();
        let mut all = vec![
            NewTensor::new("token_embd.weight", &[d, v], Fill::Normal(1.0)),
            NewTensor::new("output_norm.weight", &[d], Fill::Same(1.0)),
            NewTensor::new("output.weight", &[d, v], Fill::Normal(self.output_scale)),
        ];

        for layer in 0..self.layers {
            let mut add = |name: &str, shape: &[u32], fill| {
                all.push(NewTensor::new(&format!("blk.{layer}.{name}.weight"), shape, fill));
            };
            add("attn_norm", &[d], Fill::Same(1.0));
            for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                add(name, &[d, d], Fill::Normal(inner));
            }
            add("ffn_norm", &[d], Fill::Same(1.0));
            add("ffn_gate", &[d, f], Fill::Normal(inner));
            add("ffn_up", &[d, f], Fill::Normal(inner));
            add("ffn_down", &[f, d], Fill::Normal(1.0 / (f as f32).sqrt()));
        }

        all
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let llama = |key: &str, value| (format!("llama.{key}"), value);
        let mut all = vec![
            ("general.architecture".to_owned(), Value::Text("llama".to_owned())),
            ("general.name".to_owned(), Value::Text("tiny random".to_owned())),
            llama("context_length", Value::Number(self.context)),
            llama("embedding_length", Value::Number(self.width)),
            llama("block_count", Value::Number(self.layers)),
            llama("feed_forward_length", Value::Number(self.hidden)),
            llama("attention.head_count", Value::Number(self.heads)),
            llama("attention.head_count_kv", Value::Number(self.heads)),
            llama("attention.layer_norm_rms_epsilon", Value::Real(1e-5)),
            llama("rope.dimension_count", Value::Number(self.width / self.heads)),
            llama("vocab_size", Value::Number(VOCABULARY)),
        ];
        all.extend(byte_tokenizer());
        all
    }
}
