//! Reads the header of a GGUF file: metadata and tensors, and whether the file is complete.
//!
//! Knows nothing of architectures: llama.cpp may still refuse a file that passes. Reads only the
//! header, never the weights, and allocates nothing for a claim that the file's length does not
//! support.

mod adapter;
mod finite;
mod parts;
mod reader;
mod tensor_type;
#[cfg(test)]
mod tests;
mod tokenizer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use reader::Reader;

use super::EngineError;

pub use adapter::{AdapterFile, read_adapter};
pub use parts::part_paths;
pub use tokenizer::{ChatTokenizer, read_chat_tokenizer};

/// Metadata key of a list of strings: the slugs of the tasks that a model was trained on.
/// `prime-agents train` writes it.
pub const TASKS_KEY: &str = "prime.tasks";

/// A file's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Version of the format, 2 or 3.
    pub version: u32,
    /// The value of `general.architecture`.
    pub architecture: String,
    /// Non-negative integers, and short lists of them, by key; without those of the tokenizer.
    pub numbers: BTreeMap<String, Vec<u64>>,
    /// Short lists of strings by key; without those of the tokenizer.
    pub strings: BTreeMap<String, Vec<String>>,
    /// Length of the tokenizer's list of tokens.
    pub vocabulary: u64,
    /// Byte ranges of the metadata values in the file, by key; each has the type and the value.
    pub values: BTreeMap<String, Range<u64>>,
    /// The tensors, in the order of their data, and of the files if there are several.
    pub tensors: Vec<Tensor>,
    /// The files of a model that is split, in order; empty for a single file.
    pub parts: Vec<PathBuf>,
}

impl Header {
    /// The non-negative integers of a key.
    pub fn numbers(&self, key: &str) -> Option<&[u64]> {
        self.numbers.get(key).map(Vec::as_slice)
    }

    /// The file with the metadata, which llama.cpp is given: the first part of a model that is
    /// split, whichever of them `path` names.
    pub fn first_part<'p>(&'p self, path: &'p Path) -> &'p Path {
        self.parts.first().map_or(path, PathBuf::as_path)
    }

    /// A metadata value that is a single number.
    fn number(&self, key: &str) -> Option<u64> {
        self.numbers(key)?.first().copied()
    }

    /// Tokens that layers with a sliding window attend to; 0 if the file names none.
    pub fn sliding_window(&self) -> u64 {
        let key = format!("{}.attention.sliding_window", self.architecture);
        self.numbers(&key).and_then(|all| all.iter().copied().max()).unwrap_or(0)
    }

    /// The longest context in tokens that the model was trained for.
    pub fn context_length(&self) -> Option<u64> {
        self.numbers(&format!("{}.context_length", self.architecture))?.first().copied()
    }
}

/// A tensor of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    /// The name; bytes that are not printable ASCII are escaped.
    pub name: String,
    /// Lengths of its 1 to 4 dimensions, the fastest first.
    pub dimensions: Vec<u64>,
    /// ggml's number of the element type: 0 is f32, 1 is f16.
    pub kind: u32,
    /// Start of the data in its file, in bytes.
    pub offset: u64,
    /// Size of the data in bytes. A tensor of an unknown type is taken to extend to the next one.
    pub bytes: u64,
}

/// Why a file is not a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GgufError {
    /// It is not GGUF, or of another version.
    #[error("not a GGUF file of version 2 or 3: found {0}")]
    Foreign(String),
    /// It ends early, or its header contradicts itself.
    #[error("truncated or damaged: {0}")]
    Damaged(String),
}

/// Reads the header of a file in memory.
///
/// # Errors
/// [`GgufError`].
pub fn parse(bytes: &[u8]) -> Result<Header, GgufError> {
    Reader::new(bytes, bytes.len() as u64).header()
}

/// Reads the header of a model: of one file or, if any part of a split one is named, of all parts.
///
/// # Errors
/// [`EngineError::ModelMissing`], also with the path of a part that is missing,
/// [`EngineError::ModelForeign`] and [`EngineError::ModelTruncated`].
pub fn read(path: &Path) -> Result<Header, EngineError> {
    let header = read_file(path)?;
    match header.number(parts::COUNT_KEY) {
        Some(count) if count > 1 => parts::read(path, &header, count),
        _ => Ok(header),
    }
}

/// Like [`read`], for a file that is to be loaded as a model.
///
/// # Errors
/// Like [`read`], and [`EngineError::ModelIsAdapter`].
pub fn read_model(path: &Path) -> Result<Header, EngineError> {
    let header = read(path)?;
    if adapter::is_adapter(header.first_part(path), &header) {
        return Err(EngineError::ModelIsAdapter { path: path.to_owned() });
    }
    Ok(header)
}

/// Opens a file to read, unless it is something else: opening a pipe would wait for its writer, and
/// a device never ends.
///
/// # Errors
/// Those of opening it, and if it is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

fn read_file(path: &Path) -> Result<Header, EngineError> {
    let missing = |detail: String| EngineError::ModelMissing { path: path.to_owned(), detail };
    let file = open_regular(path).map_err(|e| missing(e.to_string()))?;
    let length = file.metadata().map_err(|e| missing(e.to_string()))?.len();

    Reader::new(BufReader::new(file), length).header().map_err(|error| match error {
        GgufError::Foreign(found) => EngineError::ModelForeign { path: path.to_owned(), found },
        GgufError::Damaged(detail) => EngineError::ModelTruncated { path: path.to_owned(), detail },
    })
}
