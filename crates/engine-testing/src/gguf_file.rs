//! Writes GGUF files of f32 tensors with random values, and a byte-level tokenizer.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Tokens of the vocabulary: 256 bytes, begin, end, padding.
pub const VOCABULARY: u32 = 259;
/// Token that begins a text.
pub const BEGIN: u32 = 256;
/// Token that ends a text.
pub const END: u32 = 257;

/// What a tensor holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fill {
    /// One value everywhere.
    Same(f32),
    /// Nearly normal values with this standard deviation.
    Normal(f32),
    /// Values drawn uniformly between two.
    Between(f32, f32),
}

/// A tensor to be written.
#[derive(Debug, Clone)]
pub(super) struct NewTensor {
    name: String,
    /// Its lengths, the fastest first.
    shape: Vec<u32>,
    fill: Fill,
}

impl NewTensor {
    pub(super) fn new(name: &str, shape: &[u32], fill: Fill) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), fill }
    }

    fn count(&self) -> u64 {
        self.shape.iter().map(|length| u64::from(*length)).product()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shape(&self) -> &[u32] {
        &self.shape
    }

    pub(super) fn fill(&self) -> Fill {
        self.fill
    }

    /// Its values, drawn now.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let value = |_| {
            // The sum of four uniform draws is close enough to a normal one.
            let draw: f32 = (0..4).map(|_| rng.random_range(-0.866_f32..0.866)).sum();
            match self.fill {
                Fill::Same(value) => value,
                Fill::Normal(scale) => draw * scale,
                Fill::Between(low, high) => rng.random_range(low..high),
            }
        };
        (0..self.count()).map(value).collect()
    }

    fn put(&self, values: &[f32], out: &mut impl Write) -> io::Result<()> {
        for value in values {
            out.write_all(&value.to_le_bytes())?;
        }
        let padding = (4 * self.count()).next_multiple_of(32) - 4 * self.count();
        out.write_all(&vec![0; usize::try_from(padding).unwrap_or(0)])
    }
}

/// Writes a GGUF file.
pub(super) fn write_file(
    path: &Path,
    meta: &[(String, Value)],
    tensors: &[NewTensor],
    seed: u64,
) -> io::Result<()> {
    write_changed(path, meta, tensors, seed, &|_, _| {})
}

/// What is done to the values of a tensor with this name.
type Change<'c> = &'c dyn Fn(&str, &mut [f32]);

/// Writes a GGUF file whose values are changed after they were drawn.
pub(super) fn write_changed(
    path: &Path,
    meta: &[(String, Value)],
    tensors: &[NewTensor],
    seed: u64,
    change: Change<'_>,
) -> io::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    write_part(path, meta, tensors, &mut rng, change)
}

/// Writes a model as several files, each with the tensors of one of `parts`.
pub(super) fn write_parts(
    paths: &[std::path::PathBuf],
    meta: &[(String, Value)],
    tensors: &[NewTensor],
    seed: u64,
) -> io::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let each = tensors.len().div_ceil(paths.len().max(1));
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);

    for (at, path) in paths.iter().enumerate() {
        // Only the first part has the model's own metadata.
        let mut own = if at == 0 { meta.to_vec() } else { Vec::new() };
        own.push(("split.no".to_owned(), Value::Short(count(at))));
        own.push(("split.count".to_owned(), Value::Short(count(paths.len()))));
        let all = i32::try_from(tensors.len()).unwrap_or(i32::MAX);
        own.push(("split.tensors.count".to_owned(), Value::Signed(all)));

        let start = (at * each).min(tensors.len());
        let end = (start + each).min(tensors.len());
        write_part(path, &own, &tensors[start..end], &mut rng, &|_, _| {})?;
    }
    Ok(())
}

fn write_part(
    path: &Path,
    meta: &[(String, Value)],
    tensors: &[NewTensor],
    rng: &mut ChaCha8Rng,
    change: Change<'_>,
) -> io::Result<()> {
    let mut head = Vec::new();
    head.extend(b"GGUF");
    // Version of the format.
    head.extend(3_u32.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend((meta.len() as u64).to_le_bytes());
    for (key, value) in meta {
        put_text(&mut head, key);
        value.put(&mut head);
    }

    let mut offset = 0_u64;
    for tensor in tensors {
        put_text(&mut head, &tensor.name);
        head.extend(u32::try_from(tensor.shape.len()).unwrap_or(u32::MAX).to_le_bytes());
        for length in &tensor.shape {
            head.extend(u64::from(*length).to_le_bytes());
        }
        // ggml's number of the element type: f32.
        head.extend(0_u32.to_le_bytes());
        head.extend(offset.to_le_bytes());
        offset += (4 * tensor.count()).next_multiple_of(32);
    }

    head.resize(head.len().next_multiple_of(32), 0);
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    out.write_all(&head)?;
    for tensor in tensors {
        let mut values = tensor.draw(rng);
        change(&tensor.name, &mut values);
        tensor.put(&values, &mut out)?;
    }
    out.flush()
}

/// The metadata of a byte-level tokenizer: the id of a token is the value of its byte.
pub(super) fn byte_tokenizer() -> Vec<(String, Value)> {
    let tokens =
        (0..=255_u8).map(byte_symbol).chain(["<|bos|>", "<|eos|>", "<|pad|>"].map(str::to_owned));
    let kinds = (0..VOCABULARY).map(|id| if id < 256 { 1 } else { 3 });
    let tokenizer = |key: &str, value| (format!("tokenizer.ggml.{key}"), value);
    vec![
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

/// A metadata value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string.
    Text(String),
    /// An array of strings.
    Texts(Vec<String>),
    /// An unsigned number of 32 bits.
    Number(u32),
    /// A signed number of 32 bits.
    Signed(i32),
    /// An unsigned number of 16 bits.
    Short(u16),
    /// An array of signed numbers of 32 bits.
    Numbers(Vec<i32>),
    /// A float of 32 bits.
    Real(f32),
    /// A boolean.
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
            Self::Signed(number) => {
                out.extend(5_u32.to_le_bytes());
                out.extend(number.to_le_bytes());
            }
            Self::Short(number) => {
                out.extend(2_u32.to_le_bytes());
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

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
