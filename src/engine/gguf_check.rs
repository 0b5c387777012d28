//! Reads a GGUF file's header and checks that the file is whole, before llama.cpp maps it.
//!
//! Knows nothing of architectures: a file that passes can still be refused by llama.cpp. Reads the header only, never
//! the weights.

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

/// Checks magic, version, metadata and every tensor's place in the file.
pub(super) fn check(path: &Path) -> Result<(), EngineError> {
    let missing = |detail: String| EngineError::ModelMissing { path: path.to_owned(), detail };
    let file = File::open(path).map_err(|e| missing(e.to_string()))?;
    let meta = file.metadata().map_err(|e| missing(e.to_string()))?;
    if !meta.is_file() {
        return Err(missing("it is not a regular file".to_owned()));
    }
    let mut header = Header { input: BufReader::new(file), at: 0, size: meta.len() };
    header.check().map_err(|fault| match fault {
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

/// A header that is being read, with the position in the file.
struct Header<R> {
    input: R,
    at: u64,
    size: u64,
}

impl<R: Read> Header<R> {
    fn check(&mut self) -> Result<(), Fault> {
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
            } else {
                self.skip_value(kind, 0)?;
            }
        }
        let mut ends = Vec::new();
        for _ in 0..tensors {
            ends.push(self.tensor_end(alignment)?);
        }
        let data = self.at.next_multiple_of(alignment);
        let need = ends.into_iter().max().unwrap_or(0).checked_add(data);
        match need {
            Some(need) if need <= self.size => Ok(()),
            _ => damaged(format!("the file has {} bytes, its tensors need {need:?}", self.size)),
        }
    }

    /// Where a tensor ends, counted from the beginning of the data.
    fn tensor_end(&mut self, alignment: u64) -> Result<u64, Fault> {
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
        let (block, bytes) = block_of(kind).unwrap_or((1, 0));
        if !row.is_multiple_of(block) {
            return damaged(format!("tensor {name} has rows of {row}, not a multiple of {block}"));
        }
        match (elements / block).checked_mul(bytes).and_then(|size| offset.checked_add(size)) {
            Some(end) => Ok(end),
            None => damaged(format!("tensor {name} has an impossible place")),
        }
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
                match scalar_bytes(element) {
                    Some(width) => self.skip(length.saturating_mul(width)),
                    // Each element takes at least eight bytes of the file, so a wrong length ends at its end.
                    None => (0..length).try_for_each(|_| self.skip_value(element, depth + 1)),
                }
            }
            _ => match scalar_bytes(kind) {
                Some(width) => self.skip(width),
                None => damaged(format!("metadata value of unknown kind {kind}")),
            },
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
    use crate::engine::testing::TinyModel;

    #[test]
    fn every_truncation_of_a_model_is_refused_and_the_whole_passes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("tiny.gguf");
        TinyModel::default().write(&path).expect("model written");
        assert_eq!(check(&path), Ok(()));
        let bytes = std::fs::read(&path).expect("model read");
        // Every length inside the header's beginning, then coarser.
        let lengths = (0..600).chain((600..bytes.len()).step_by(997)).chain([bytes.len() - 1]);
        for length in lengths {
            let mut header = Header { input: &bytes[..length], at: 0, size: length as u64 };
            assert!(header.check().is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn missing_and_foreign_files_are_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        assert!(matches!(check(&dir.path().join("none")), Err(EngineError::ModelMissing { .. })));
        assert!(matches!(check(dir.path()), Err(EngineError::ModelMissing { .. })));
        let path = dir.path().join("text");
        for text in [&b""[..], b"PK", b"PK\x03\x04 something else", b"GGUF\x01\0\0\0\0\0\0\0"] {
            std::fs::write(&path, text).expect("file written");
            assert!(matches!(check(&path), Err(EngineError::ModelForeign { .. })), "{text:?}");
        }
    }

    #[test]
    fn claims_beyond_reason_do_not_cost_memory() {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        assert!(Header { input: &bytes[..], at: 0, size: bytes.len() as u64 }.check().is_err());
        bytes[8..16].copy_from_slice(&0_u64.to_le_bytes());
        bytes.extend(3_u64.to_le_bytes());
        bytes.extend(b"key");
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(Header { input: &bytes[..], at: 0, size: bytes.len() as u64 }.check().is_err());
    }
}
