//! Reads a GGUF file's header and checks that the file is whole, before llama.cpp maps it.
//!
//! Knows nothing of architectures: a file that passes can still be refused by llama.cpp. Reads the header only, never
//! the weights.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::EngineError;

/// Most tensors, and most metadata entries, of a file; real models have a few thousand.
const ENTRIES_MAX: u64 = 1 << 17;
/// Longest name of a tensor or a key, in bytes.
const NAME_BYTES_MAX: u64 = 1 << 16;
/// Arrays may hold arrays; none is known to do so more than once.
const ARRAY_DEPTH_MAX: u8 = 4;
/// Longest list of whole numbers that is kept: those of interest have one for each layer.
const LIST_MAX: u64 = 1 << 12;
/// Most lists and numbers that are kept; real models have a hundred.
const NUMBERS_MAX: usize = 1 << 12;

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// The value of `general.architecture`.
    pub(super) architecture: String,
    /// Whole numbers that are not negative, and short lists of them, by key.
    pub(super) numbers: BTreeMap<String, Vec<u64>>,
    /// Length of the tokenizer's list of tokens.
    pub(super) vocabulary: u64,
    /// Every tensor.
    pub(super) tensors: Vec<Tensor>,
}

impl Contents {
    pub(super) fn numbers(&self, key: &str) -> Option<&[u64]> {
        self.numbers.get(key).map(Vec::as_slice)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// Size of the data in bytes.
    pub(super) bytes: u64,
}

/// Checks magic, version, metadata and every tensor's place in the file, and says what is in it.
///
/// # Errors
/// [`EngineError::ModelMissing`], [`EngineError::ModelForeign`] and [`EngineError::ModelTruncated`].
pub(super) fn read(path: &Path) -> Result<Contents, EngineError> {
    let missing = |detail: String| EngineError::ModelMissing { path: path.to_owned(), detail };
    let file = File::open(path).map_err(|e| missing(e.to_string()))?;
    let meta = file.metadata().map_err(|e| missing(e.to_string()))?;
    if !meta.is_file() {
        return Err(missing("it is not a regular file".to_owned()));
    }
    let mut header = Header { input: BufReader::new(file), at: 0, size: meta.len() };
    header.read().map_err(|fault| match fault {
        Fault::Foreign(found) => EngineError::ModelForeign { path: path.to_owned(), found },
        Fault::Damaged(detail) => EngineError::ModelTruncated { path: path.to_owned(), detail },
    })
}

enum Fault {
    Foreign(String),
    Damaged(String),
}

fn damaged<T>(detail: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Damaged(detail.into()))
}

/// Where a tensor is, counted from the beginning of the data.
struct Place {
    name: String,
    offset: u64,
    /// `None` for a kind that [`block_of`] does not know.
    bytes: Option<u64>,
}

/// The tensors with their sizes. One of an unknown kind reaches to the next one, or to the end of the data.
fn sizes(mut places: Vec<Place>, data: u64) -> Vec<Tensor> {
    places.sort_by_key(|place| place.offset);
    let mut end = data;
    let mut tensors = Vec::with_capacity(places.len());
    for place in places.into_iter().rev() {
        let bytes = place.bytes.unwrap_or(end.saturating_sub(place.offset));
        end = place.offset;
        tensors.push(Tensor { name: place.name, bytes });
    }
    tensors.reverse();
    tensors
}

/// A header that is being read, with the position in the file.
struct Header<R> {
    input: R,
    at: u64,
    size: u64,
}

impl<R: Read> Header<R> {
    fn read(&mut self) -> Result<Contents, Fault> {
        let magic: [u8; 4] = match self.bytes() {
            Ok(magic) => magic,
            Err(_) => return Err(Fault::Foreign(format!("a file of {} bytes", self.size))),
        };
        if &magic != b"GGUF" {
            return Err(Fault::Foreign(format!("the first bytes {:?}", magic.escape_ascii().to_string())));
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(Fault::Foreign(format!("version {version}")));
        }
        let tensors = self.count("tensors", ENTRIES_MAX)?;
        let entries = self.count("metadata entries", ENTRIES_MAX)?;
        let mut alignment = 32_u64;
        let mut contents = Contents::default();
        for _ in 0..entries {
            let key = self.name()?;
            let kind = self.u32()?;
            if key == b"general.alignment" {
                if kind != 4 {
                    return damaged("general.alignment is not a 32-bit number");
                }
                alignment = u64::from(self.u32()?);
                if !alignment.is_power_of_two() || alignment > 1 << 20 {
                    return damaged(format!("general.alignment is {alignment}"));
                }
            } else if key == b"general.architecture" && kind == 8 {
                contents.architecture = String::from_utf8_lossy(&self.name()?).into_owned();
            } else {
                self.entry(&key, kind, &mut contents)?;
            }
        }
        let mut places = Vec::new();
        for _ in 0..tensors {
            places.push(self.place(alignment)?);
        }
        let data = self.at.next_multiple_of(alignment);
        let need = places.iter().map(|place| place.offset.saturating_add(place.bytes.unwrap_or(0))).max();
        match need.unwrap_or(0).checked_add(data) {
            Some(need) if need <= self.size => {}
            need => return damaged(format!("the file has {} bytes, its tensors need {need:?}", self.size)),
        }
        contents.tensors = sizes(places, self.size - data);
        Ok(contents)
    }

    /// Takes a metadata value: keeps what tells sizes, skips the rest.
    fn entry(&mut self, key: &[u8], kind: u32, contents: &mut Contents) -> Result<(), Fault> {
        let of_interest = !key.starts_with(b"tokenizer.") && contents.numbers.len() < NUMBERS_MAX;
        let mut keep = |numbers: Option<Vec<u64>>| {
            if let (true, Some(numbers), Ok(key)) = (of_interest, numbers, str::from_utf8(key)) {
                contents.numbers.insert(key.to_owned(), numbers);
            }
        };
        if kind != 9 {
            return match scalar_bytes(kind) {
                Some(_) => {
                    let number = self.whole_number(kind)?;
                    keep(number.map(|number| vec![number]));
                    Ok(())
                }
                None => self.skip_value(kind, 0),
            };
        }
        let element = self.u32()?;
        let length = self.u64()?;
        if key == b"tokenizer.ggml.tokens" {
            contents.vocabulary = length;
        } else if of_interest && length <= LIST_MAX && scalar_bytes(element).is_some() {
            let numbers = (0..length).map(|_| self.whole_number(element)).collect::<Result<Vec<_>, _>>()?;
            keep(numbers.into_iter().collect());
            return Ok(());
        }
        self.skip_elements(element, length, 0)
    }

    /// Reads a value of fixed size; `None` if it is negative or no whole number.
    fn whole_number(&mut self, kind: u32) -> Result<Option<u64>, Fault> {
        Ok(match kind {
            0 => Some(u64::from(self.bytes::<1>()?[0])),
            1 => u64::try_from(i8::from_le_bytes(self.bytes()?)).ok(),
            2 => Some(u64::from(u16::from_le_bytes(self.bytes()?))),
            3 => u64::try_from(i16::from_le_bytes(self.bytes()?)).ok(),
            4 => Some(u64::from(self.u32()?)),
            5 => u64::try_from(i32::from_le_bytes(self.bytes()?)).ok(),
            10 => Some(self.u64()?),
            11 => u64::try_from(i64::from_le_bytes(self.bytes()?)).ok(),
            _ => {
                self.skip(scalar_bytes(kind).unwrap_or(0))?;
                None
            }
        })
    }

    /// A tensor's place in the data.
    fn place(&mut self, alignment: u64) -> Result<Place, Fault> {
        let name = self.name()?.escape_ascii().to_string();
        let dims = self.u32()?;
        if !(1..=4).contains(&dims) {
            return damaged(format!("tensor {name} has {dims} dimensions"));
        }
        let mut elements = 1_u64;
        let mut row = 1_u64;
        for dim in 0..dims {
            let length = self.u64()?;
            if dim == 0 {
                row = length;
            }
            elements = match elements.checked_mul(length) {
                Some(n) if n > 0 && n < 1 << 48 => n,
                _ => return damaged(format!("tensor {name} has an impossible size")),
            };
        }
        let kind = self.u32()?;
        let offset = self.u64()?;
        if !offset.is_multiple_of(alignment) {
            return damaged(format!("tensor {name} is not aligned to {alignment} bytes"));
        }
        // A kind that is newer than this table is left to llama.cpp; its offset is checked all the same.
        let Some((block, bytes)) = block_of(kind) else { return Ok(Place { name, offset, bytes: None }) };
        if !row.is_multiple_of(block) {
            return damaged(format!("tensor {name} has rows of {row}, not a multiple of {block}"));
        }
        let bytes = (elements / block).checked_mul(bytes);
        if bytes.and_then(|bytes| bytes.checked_add(offset)).is_none() {
            return damaged(format!("tensor {name} has an impossible place"));
        }
        Ok(Place { name, offset, bytes })
    }

    fn skip_value(&mut self, kind: u32, depth: u8) -> Result<(), Fault> {
        match kind {
            8 => {
                let length = self.u64()?;
                self.skip(length)
            }
            9 => {
                if depth == ARRAY_DEPTH_MAX {
                    return damaged("metadata arrays are nested too deep");
                }
                let element = self.u32()?;
                let length = self.u64()?;
                self.skip_elements(element, length, depth)
            }
            _ => match scalar_bytes(kind) {
                Some(width) => self.skip(width),
                None => damaged(format!("metadata value of unknown kind {kind}")),
            },
        }
    }

    fn skip_elements(&mut self, kind: u32, length: u64, depth: u8) -> Result<(), Fault> {
        match scalar_bytes(kind) {
            Some(width) => self.skip(length.saturating_mul(width)),
            // Each element takes at least eight bytes of the file, so a wrong length ends at its end.
            None => (0..length).try_for_each(|_| self.skip_value(kind, depth + 1)),
        }
    }

    fn name(&mut self) -> Result<Vec<u8>, Fault> {
        let length = self.count("bytes of a name", NAME_BYTES_MAX)?;
        let mut name = vec![0; usize::try_from(length).expect("invariant: at most NAME_BYTES_MAX")];
        self.fill(&mut name)?;
        Ok(name)
    }

    fn count(&mut self, what: &str, max: u64) -> Result<u64, Fault> {
        let count = self.u64()?;
        if count > max {
            return damaged(format!("its header claims {count} {what}"));
        }
        Ok(count)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        if self.input.read_exact(bytes).is_err() {
            return damaged(format!("the file ends inside its header, after {} bytes", self.size));
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), Fault> {
        let skipped = std::io::copy(&mut self.input.by_ref().take(count), &mut std::io::sink());
        if skipped.unwrap_or(0) != count {
            return damaged(format!("the file ends inside its header, after {} bytes", self.size));
        }
        self.at += count;
        Ok(())
    }
}

/// Width of a metadata value of fixed size, in bytes.
fn scalar_bytes(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Elements and bytes of one block of a tensor kind (ggml's `type_traits`).
fn block_of(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        16 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        23 => (256, 136),
        24 => (1, 1),
        27 | 28 => (1, 8),
        39 => (32, 17),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TinyModel;

    #[test]
    fn every_truncation_of_a_model_is_refused_and_the_whole_passes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("tiny.gguf");
        TinyModel::default().write(&path).expect("model written");
        assert_eq!(read(&path).expect("a whole file").vocabulary, 259);
        let bytes = std::fs::read(&path).expect("model read");
        // Every length inside the header's beginning, then coarser.
        let lengths = (0..600).chain((600..bytes.len()).step_by(997)).chain([bytes.len() - 1]);
        for length in lengths {
            let mut header = Header { input: &bytes[..length], at: 0, size: length as u64 };
            assert!(header.read().is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn missing_and_foreign_files_are_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        assert!(matches!(read(&dir.path().join("none")), Err(EngineError::ModelMissing { .. })));
        assert!(matches!(read(dir.path()), Err(EngineError::ModelMissing { .. })));
        let path = dir.path().join("text");
        for text in [&b""[..], b"PK", b"PK\x03\x04 something else", b"GGUF\x01\0\0\0\0\0\0\0"] {
            std::fs::write(&path, text).expect("file written");
            assert!(matches!(read(&path), Err(EngineError::ModelForeign { .. })), "{text:?}");
        }
    }

    /// A header with these entries (key, kind, value) and tensors (name, kind, offset), of 64 elements each, and data.
    fn file(entries: &[(&str, u32, &[u8])], tensors: &[(&str, u32, u64)], data: usize) -> Vec<u8> {
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        };
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((tensors.len() as u64).to_le_bytes());
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (key, kind, value) in entries {
            text(&mut bytes, key);
            bytes.extend(kind.to_le_bytes());
            bytes.extend(*value);
        }
        for (name, kind, offset) in tensors {
            text(&mut bytes, name);
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend(64_u64.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(offset.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(32) + data, 0);
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Contents {
        let mut header = Header { input: bytes, at: 0, size: bytes.len() as u64 };
        header.read().unwrap_or_else(|_| panic!("a whole file"))
    }

    #[test]
    fn numbers_and_short_lists_are_kept_and_the_rest_is_passed_over() {
        let list = |kind: u32, length: u64, elements: &[u8]| {
            [&kind.to_le_bytes()[..], &length.to_le_bytes(), elements].concat()
        };
        let text = [&3_u64.to_le_bytes()[..], b"gpt"].concat();
        let entries: [(&str, u32, &[u8]); 8] = [
            ("a.byte", 0, &[200]),
            ("a.negative", 5, &[255; 4]),
            ("a.long", 10, &[0, 0, 0, 0, 1, 0, 0, 0]),
            ("a.real", 6, &[0; 4]),
            ("a.text", 8, &text),
            ("a.list", 9, &list(5, 2, &[3, 0, 0, 0, 4, 0, 0, 0])),
            ("tokenizer.ggml.tokens", 9, &list(8, 2, &[0; 16])),
            ("a.last", 7, &[1]),
        ];
        let contents = read_bytes(&file(&entries, &[], 0));
        let numbers: Vec<_> = contents.numbers.iter().map(|(key, all)| (key.as_str(), all.as_slice())).collect();
        assert_eq!(numbers, [("a.byte", &[200][..]), ("a.list", &[3, 4]), ("a.long", &[1 << 32])]);
        assert_eq!(contents.vocabulary, 2);
    }

    #[test]
    fn tensors_have_the_sizes_of_their_kinds_and_unknown_ones_reach_to_the_next() {
        let tensors = [("last", 999, 512), ("q8_0", 8, 0), ("f16", 1, 384), ("new", 998, 96)];
        let contents = read_bytes(&file(&[], &tensors, 640));
        let sizes: Vec<_> = contents.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.bytes)).collect();
        // 64 elements of q8_0 are two blocks of 34 bytes.
        assert_eq!(sizes, [("q8_0", 68), ("new", 288), ("f16", 128), ("last", 128)]);
    }

    #[test]
    fn claims_beyond_reason_do_not_cost_memory() {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        assert!(Header { input: &bytes[..], at: 0, size: bytes.len() as u64 }.read().is_err());
        bytes[8..16].copy_from_slice(&0_u64.to_le_bytes());
        bytes.extend(3_u64.to_le_bytes());
        bytes.extend(b"key");
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(Header { input: &bytes[..], at: 0, size: bytes.len() as u64 }.read().is_err());
    }
}
