//! Writes tiny models with random weights, so that tests need no pretrained ones.
//!
//! A byte-level tokenizer (token id = byte value, then begin, end and padding) and the llama
//! architecture with untied f32 weights. Deliberately not the trainer's writer, whose exports tests
//! check with the engine.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

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

/// Tokens of the vocabulary: 256 bytes, begin, end, padding.
pub const VOCABULARY: u32 = 259;
/// Token that begins a text.
pub const BEGIN: u32 = 256;
/// Token that ends a text.
pub const END: u32 = 257;

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

    fn write_with(&self, path: &Path, template: Option<&str>) -> io::Result<()> {
        self.write_changed(path, template, |_, _| {})
    }

    /// Writes the model with an adapter merged into its weights.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write_merged(&self, path: &Path, adapter: &TinyAdapter, scale: f32) -> io::Result<()> {
        self.write_changed(path, None, |name, weights| adapter.merge(self, name, weights, scale))
    }

    fn write_changed(
        &self,
        path: &Path,
        template: Option<&str>,
        change: impl Fn(&str, &mut [f32]),
    ) -> io::Result<()> {
        let mut meta = self.metadata();
        let template = template.map(|text| Value::Text(text.to_owned()));
        meta.extend(template.map(|text| ("tokenizer.chat_template".to_owned(), text)));

        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let tensors = self.tensors().into_iter().map(|(name, shape, scale)| {
            let mut weights = draws(&mut rng, &shape, scale);
            change(&name, &mut weights);
            (name, shape, weights)
        });
        write_gguf(path, &meta, &self.places(), tensors)
    }

    /// Name and shape of each tensor.
    fn places(&self) -> Vec<(String, Vec<u32>)> {
        self.tensors().into_iter().map(|(name, shape, _)| (name, shape)).collect()
    }

    /// Name, shape (fastest dimension first) and scale of each tensor.
    pub(super) fn tensors(&self) -> Vec<(String, Vec<u32>, f32)> {
        let (d, f, v) = (self.width, self.hidden, VOCABULARY);
        let inner = 1.0 / (d as f32).sqrt();
        let mut all = vec![
            ("token_embd.weight".to_owned(), vec![d, v], 1.0),
            ("output_norm.weight".to_owned(), vec![d], 0.0),
            ("output.weight".to_owned(), vec![d, v], self.output_scale),
        ];

        for layer in 0..self.layers {
            let mut add = |name: &str, shape: Vec<u32>, scale| {
                all.push((format!("blk.{layer}.{name}.weight"), shape, scale));
            };
            add("attn_norm", vec![d], 0.0);
            for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                add(name, vec![d, d], inner);
            }
            add("ffn_norm", vec![d], 0.0);
            add("ffn_gate", vec![d, f], inner);
            add("ffn_up", vec![d, f], inner);
            add("ffn_down", vec![f, d], 1.0 / (f as f32).sqrt());
        }

        all
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let tokens = (0..=255_u8)
            .map(byte_symbol)
            .chain(["<|bos|>", "<|eos|>", "<|pad|>"].map(str::to_owned));
        let kinds = (0..VOCABULARY).map(|id| if id < 256 { 1 } else { 3 });
        let llama = |key: &str, value| (format!("llama.{key}"), value);
        let tokenizer = |key: &str, value| (format!("tokenizer.ggml.{key}"), value);

        vec![
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
            tokenizer("model", Value::Text("gpt2".to_owned())),
            tokenizer("pre", Value::Text("qwen2".to_owned())),
            tokenizer("tokens", Value::Texts(tokens.collect())),
            tokenizer("token_type", Value::Numbers(kinds.collect())),
            // llama.cpp requires the list, but never applies this entry.
            tokenizer("merges", Value::Texts(vec!["<|bos|> <|eos|>".to_owned()])),
            tokenizer("bos_token_id", Value::Number(BEGIN)),
            tokenizer("eos_token_id", Value::Number(END)),
            tokenizer("padding_token_id", Value::Number(258)),
            tokenizer("add_bos_token", Value::Flag(true)),
            tokenizer("add_eos_token", Value::Flag(false)),
        ]
    }
}

/// GPT-2's printable form of a byte.
fn byte_symbol(byte: u8) -> String {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let code = if printable(byte) {
        u32::from(byte)
    } else {
        256 + (0..byte).map(|b| u32::from(!printable(b))).sum::<u32>()
    };
    char::from_u32(code).expect("invariant: codes below 512 are characters").to_string()
}

pub(super) enum Value {
    Text(String),
    Texts(Vec<String>),
    Number(u32),
    Numbers(Vec<i32>),
    Real(f32),
    Flag(bool),
}

impl Value {
    fn put(&self, out: &mut Vec<u8>) {
        let array = |out: &mut Vec<u8>, kind: u32, length: usize| {
            out.extend(9_u32.to_le_bytes());
            out.extend(kind.to_le_bytes());
            out.extend((length as u64).to_le_bytes());
        };

        match self {
            Self::Text(text) => {
                out.extend(8_u32.to_le_bytes());
                put_text(out, text);
            }
            Self::Texts(texts) => {
                array(out, 8, texts.len());
                for text in texts {
                    put_text(out, text);
                }
            }
            Self::Number(number) => {
                out.extend(4_u32.to_le_bytes());
                out.extend(number.to_le_bytes());
            }
            Self::Numbers(numbers) => {
                array(out, 5, numbers.len());
                for number in numbers {
                    out.extend(number.to_le_bytes());
                }
            }
            Self::Real(number) => {
                out.extend(6_u32.to_le_bytes());
                out.extend(number.to_le_bytes());
            }
            Self::Flag(flag) => {
                out.extend(7_u32.to_le_bytes());
                out.push(u8::from(*flag));
            }
        }
    }
}

/// Random weights of this scale; scale 0 stands for ones (norms).
pub(super) fn draws(rng: &mut ChaCha8Rng, shape: &[u32], scale: f32) -> Vec<f32> {
    let count = shape.iter().map(|n| *n as usize).product::<usize>();
    let draw = |_| {
        // The sum of four uniform draws is close enough to a normal one.
        let draw: f32 = (0..4).map(|_| rng.random_range(-0.866_f32..0.866)).sum();
        if scale == 0.0 { 1.0 } else { draw * scale }
    };
    (0..count).map(draw).collect()
}

/// Writes a GGUF file of f32 tensors, whose names and shapes are `places`.
pub(super) fn write_gguf(
    path: &Path,
    meta: &[(String, Value)],
    places: &[(String, Vec<u32>)],
    tensors: impl Iterator<Item = (String, Vec<u32>, Vec<f32>)>,
) -> io::Result<()> {
    let mut head = Vec::new();
    head.extend(b"GGUF");
    // Version of the format.
    head.extend(3_u32.to_le_bytes());
    head.extend((places.len() as u64).to_le_bytes());
    head.extend((meta.len() as u64).to_le_bytes());
    for (key, value) in meta {
        put_text(&mut head, key);
        value.put(&mut head);
    }

    let mut offset = 0_u64;
    for (name, shape) in places {
        put_text(&mut head, name);
        head.extend(u32::try_from(shape.len()).unwrap_or(u32::MAX).to_le_bytes());
        for length in shape {
            head.extend(u64::from(*length).to_le_bytes());
        }
        // ggml's number of the element type: f32.
        head.extend(0_u32.to_le_bytes());
        head.extend(offset.to_le_bytes());

        let bytes = 4 * shape.iter().map(|n| u64::from(*n)).product::<u64>();
        offset += bytes.next_multiple_of(32);
    }

    head.resize(head.len().next_multiple_of(32), 0);
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    out.write_all(&head)?;
    for (_, _, weights) in tensors {
        for weight in &weights {
            out.write_all(&weight.to_le_bytes())?;
        }
        let bytes = 4 * weights.len();
        out.write_all(&vec![0; bytes.next_multiple_of(32) - bytes])?;
    }
    out.flush()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
