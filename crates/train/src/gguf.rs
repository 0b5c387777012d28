//! Encodes a trained model as a GGUF file for llama.cpp (architecture `llama`, byte-level BPE
//! without merges: a token per byte, and words as user-defined tokens).
//!
//! Builds bytes only; `checkpoint::replace` writes them.

use std::ops::Range;

use prime_engine::gguf::TASKS_KEY;

use super::{
    element::Precision,
    layout::Layout,
    vocabulary::{BOS, EOS, PAD, Vocabulary},
};

const ALIGNMENT: usize = 32;
const TYPE_U32: u32 = 4;
const TYPE_I32: u32 = 5;
const TYPE_F32: u32 = 6;
const TYPE_BOOL: u32 = 7;
pub const TYPE_STRING: u32 = 8;
pub const TYPE_ARRAY: u32 = 9;

/// Key of the vocabulary.
pub const TOKENS_KEY: &str = "tokenizer.ggml.tokens";
pub const CONTEXT_KEY: &str = "llama.context_length";

/// llama.cpp's token types.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// A tensor of the file, and its place in the flat vector of weights.
pub struct Place {
    pub name: String,
    /// Rows and columns; a norm gain has one row.
    shape: (usize, usize),
    start: usize,
}

impl Place {
    pub fn span(&self) -> Range<usize> {
        self.start..self.start + self.shape.0 * self.shape.1
    }

    /// Dimensions as in the file, the innermost first.
    pub fn dimensions(&self) -> Vec<u64> {
        let (rows, columns) = (self.shape.0 as u64, self.shape.1 as u64);
        if rows == 1 { vec![columns] } else { vec![columns, rows] }
    }
}

/// What a file states about its model besides the architecture.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub name: &'a str,
    /// Tasks that it was trained on; empty if unknown.
    pub tasks: &'a [String],
}

impl<'a> From<&'a str> for About<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, tasks: &[] }
    }
}

/// Encodes a model as a whole file.
pub fn encode<'a>(
    about: impl Into<About<'a>>,
    layout: &Layout,
    vocabulary: &Vocabulary,
    weights: &[f32],
    precision: Precision,
) -> Vec<u8> {
    let tensors = places(layout);
    let metadata = metadata(about.into(), layout, vocabulary, precision);

    let mut out = Vec::with_capacity(weights.len() * 4 + (1 << 14));
    // The header: magic number, version, and the numbers of tensors and keys.
    out.extend(b"GGUF");
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.entries.len() as u64).to_le_bytes());

    for (key, value) in &metadata.entries {
        text(&mut out, key);
        out.extend(value);
    }

    // The place of each tensor, with offsets that count from the first tensor's data.
    let mut offset = 0;
    for tensor in &tensors {
        let precision = element(tensor, precision);
        text(&mut out, &tensor.name);
        let dimensions = tensor.dimensions();
        out.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|size| out.extend(size.to_le_bytes()));
        out.extend(precision.code().to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        offset += precision.bytes(tensor.span().len()).next_multiple_of(ALIGNMENT);
    }

    // The data. It begins at a multiple of the alignment, as every tensor does.
    for tensor in &tensors {
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        element(tensor, precision).encode(&weights[tensor.span()], &mut out);
    }

    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out
}

/// The type that a tensor is written in: `matrices`, except for norm gains, which are always f32.
fn element(tensor: &Place, matrices: Precision) -> Precision {
    if tensor.shape.0 > 1 { matrices } else { Precision::F32 }
}

/// The file's tensors, in order.
pub fn places(layout: &Layout) -> Vec<Place> {
    let (d_model, ff) = (layout.architecture.d_model, layout.architecture.ff);
    let mut places = Vec::new();
    let mut push = |name: String, rows: usize, cols: usize, start: usize| {
        places.push(Place { name, shape: (rows, cols), start });
    };

    push("token_embd.weight".to_owned(), layout.tokens, d_model, layout.embedding.start);
    for (index, layer) in layout.layers.iter().enumerate() {
        let mut block = |part: &str, rows, cols, start| {
            push(format!("blk.{index}.{part}.weight"), rows, cols, start);
        };
        block("attn_norm", 1, d_model, layer.attention_norm.start);
        block("attn_q", d_model, d_model, layer.qkv.start);
        block("attn_k", d_model, d_model, layer.qkv.start + d_model * d_model);
        block("attn_v", d_model, d_model, layer.qkv.start + 2 * d_model * d_model);
        block("attn_output", d_model, d_model, layer.attention_output.start);
        block("ffn_norm", 1, d_model, layer.ff_norm.start);
        block("ffn_gate", ff, d_model, layer.gate_up.start);
        block("ffn_up", ff, d_model, layer.gate_up.start + ff * d_model);
        block("ffn_down", d_model, ff, layer.down.start);
    }

    push("output_norm.weight".to_owned(), 1, d_model, layout.output_norm.start);
    places
}

/// Keys, and values with their types as encoded in the file.
#[derive(Default)]
pub struct Metadata {
    entries: Vec<(&'static str, Vec<u8>)>,
}

impl Metadata {
    pub fn entries(&self) -> &[(&'static str, Vec<u8>)] {
        &self.entries
    }

    /// Adds a key, and returns where its value goes.
    fn key(&mut self, key: &'static str, kind: u32) -> &mut Vec<u8> {
        self.entries.push((key, kind.to_le_bytes().to_vec()));
        let (_, value) = self.entries.last_mut().expect("invariant: it was just added");
        value
    }

    fn string(&mut self, key: &'static str, value: &str) {
        text(self.key(key, TYPE_STRING), value);
    }

    fn number(&mut self, key: &'static str, value: usize) {
        self.key(key, TYPE_U32).extend((value as u32).to_le_bytes());
    }

    fn real(&mut self, key: &'static str, value: f32) {
        self.key(key, TYPE_F32).extend(value.to_le_bytes());
    }

    fn flag(&mut self, key: &'static str, value: bool) {
        self.key(key, TYPE_BOOL).push(u8::from(value));
    }

    fn array(&mut self, key: &'static str, kind: u32, len: usize) -> &mut Vec<u8> {
        let value = self.key(key, TYPE_ARRAY);
        value.extend(kind.to_le_bytes());
        value.extend((len as u64).to_le_bytes());
        value
    }

    fn strings(&mut self, key: &'static str, values: &[String]) {
        let out = self.array(key, TYPE_STRING, values.len());
        values.iter().for_each(|value| text(out, value));
    }

    fn integers(&mut self, key: &'static str, values: &[i32]) {
        let out = self.array(key, TYPE_I32, values.len());
        values.iter().for_each(|value| out.extend(value.to_le_bytes()));
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    out.extend((value.len() as u64).to_le_bytes());
    out.extend(value.as_bytes());
}

/// The file's metadata: architecture and tokenizer.
pub fn metadata(
    about: About<'_>,
    layout: &Layout,
    vocabulary: &Vocabulary,
    precision: Precision,
) -> Metadata {
    let architecture = layout.architecture;
    let mut data = Metadata::default();
    data.string("general.architecture", "llama");
    data.string("general.type", "model");
    data.string("general.name", about.name);

    if !about.tasks.is_empty() {
        data.strings(TASKS_KEY, about.tasks);
    }

    data.number("general.file_type", precision.file_type());
    data.number("general.alignment", ALIGNMENT);

    data.number(CONTEXT_KEY, architecture.context);
    data.number("llama.embedding_length", architecture.d_model);
    data.number("llama.block_count", architecture.layers);
    data.number("llama.feed_forward_length", architecture.ff);
    data.number("llama.attention.head_count", architecture.heads);
    data.number("llama.attention.head_count_kv", architecture.heads);
    data.real("llama.attention.layer_norm_rms_epsilon", super::network::NORM_EPSILON);
    data.number("llama.rope.dimension_count", architecture.head_dim());
    data.real("llama.rope.freq_base", 10_000.0);
    data.number("llama.vocab_size", vocabulary.size());

    data.string("tokenizer.ggml.model", "gpt2");
    // Unlike other pre-tokenizers, this one splits bytes correctly and keeps spaces when
    // detokenizing.
    data.string("tokenizer.ggml.pre", "qwen2");

    let mut tokens: Vec<String> = (0..=255).map(|byte| printable(byte).to_string()).collect();
    tokens.extend(["<|bos|>", "<|eos|>", "<|pad|>"].map(str::to_owned));
    // User-defined tokens are written as they are.
    tokens.extend_from_slice(vocabulary.words());
    data.strings(TOKENS_KEY, &tokens);

    let kind = |token| match token {
        0..256 => NORMAL,
        256..259 => CONTROL,
        _ => USER_DEFINED,
    };

    let kinds: Vec<i32> = (0..vocabulary.size()).map(kind).collect();
    data.integers("tokenizer.ggml.token_type", &kinds);

    // llama.cpp refuses a vocabulary without merges. This one would join two NUL bytes, but no such
    // token exists.
    data.strings("tokenizer.ggml.merges", &[format!("{0} {0}", printable(0))]);

    data.number("tokenizer.ggml.bos_token_id", usize::from(BOS));
    data.number("tokenizer.ggml.eos_token_id", usize::from(EOS));
    data.number("tokenizer.ggml.padding_token_id", usize::from(PAD));

    data.flag("tokenizer.ggml.add_bos_token", true);
    data.flag("tokenizer.ggml.add_eos_token", false);
    data
}

/// GPT-2's printable form of a byte.
fn printable(byte: u8) -> char {
    let shown = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if shown(byte) {
        return char::from(byte);
    }

    let hidden_before = (0..byte).filter(|&b| !shown(b)).count() as u32;
    char::from_u32(256 + hidden_before).expect("invariant: 256 to 323 are characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_forms_are_those_of_gpt2() {
        assert_eq!(
            [0, b' ', b'A', 0x7f, 0xa0, 0xad, 0xff].map(printable),
            ['Ā', 'Ġ', 'A', 'ġ', 'ł', 'Ń', 'ÿ']
        );
    }
}
