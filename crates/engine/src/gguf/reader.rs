//! Reads a header from a stream of known length.

use std::io::Read;

use super::tensor_type::{block_size, scalar_bytes};
use super::{GgufError, Header, Tensor};

/// Most tensors, and most metadata entries, of a file; real models have a few thousand.
const ENTRIES_MAX: u64 = 1 << 17;
/// Longest name of a tensor or a key, in bytes.
const NAME_BYTES_MAX: u64 = 1 << 16;
/// Arrays may hold arrays; no known file nests them more than once.
const ARRAY_DEPTH_MAX: u8 = 4;
/// Longest list of integers that is kept: those of interest have one for each layer.
const LIST_MAX: u64 = 1 << 12;
/// Longest list of strings that is kept.
const STRINGS_MAX: u64 = 1 << 10;
/// Longest text of the tokenizer that is read, in bytes.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// Most metadata values that are kept; real models have a hundred.
const VALUES_MAX: usize = 1 << 12;

/// The types of metadata values that are read as such.
const U32: u32 = 4;
const F32: u32 = 6;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

fn damaged<T>(detail: impl Into<String>) -> Result<T, GgufError> {
    Err(GgufError::Damaged(detail.into()))
}

/// A tensor whose offset counts from the start of the data. Its size is unknown if its type is.
struct Entry {
    tensor: Tensor,
    bytes: Option<u64>,
}

/// The tensors with their sizes and places in a file of `size` bytes, whose data starts at `data`.
fn located(mut entries: Vec<Entry>, data: u64, size: u64) -> Vec<Tensor> {
    entries.sort_by_key(|entry| entry.tensor.offset);

    let mut end = size - data;
    let mut tensors = Vec::with_capacity(entries.len());
    // Backwards, because a tensor of unknown type extends to the one after it.
    for Entry { tensor, bytes } in entries.into_iter().rev() {
        let bytes = bytes.unwrap_or(end.saturating_sub(tensor.offset));
        end = tensor.offset;
        tensors.push(Tensor { bytes, offset: data.saturating_add(tensor.offset), ..tensor });
    }
    tensors.reverse();
    tensors
}

pub(super) struct Reader<R> {
    input: R,
    /// Bytes read so far.
    at: u64,
    size: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R, size: u64) -> Self {
        Self { input, at: 0, size }
    }

    pub(super) fn header(&mut self) -> Result<Header, GgufError> {
        let magic: [u8; 4] = match self.bytes() {
            Ok(magic) => magic,
            Err(_) => return Err(GgufError::Foreign(format!("a file of {} bytes", self.size))),
        };
        if &magic != b"GGUF" {
            return Err(GgufError::Foreign(format!(
                "the first bytes {:?}",
                magic.escape_ascii().to_string()
            )));
        }

        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(GgufError::Foreign(format!("version {version}")));
        }

        let tensors = self.count("tensors", ENTRIES_MAX)?;
        let entries = self.count("metadata entries", ENTRIES_MAX)?;

        let mut alignment = 32_u64;
        let mut header = Header { version, ..Header::default() };
        for _ in 0..entries {
            let key = self.name()?;
            let start = self.at;
            let kind = self.u32()?;
            if key == b"general.alignment" {
                if kind != U32 {
                    return damaged("general.alignment is not a 32-bit number");
                }
                alignment = u64::from(self.u32()?);
                if !alignment.is_power_of_two() || alignment > 1 << 20 {
                    return damaged(format!("general.alignment is {alignment}"));
                }
            } else if key == b"general.architecture" && kind == STRING {
                header.architecture = String::from_utf8_lossy(&self.name()?).into_owned();
            } else {
                self.value(&key, kind, &mut header)?;
            }

            if let (Ok(key), true) = (String::from_utf8(key), header.values.len() < VALUES_MAX) {
                header.values.entry(key).or_insert(start..self.at);
            }
        }

        // Not reserved in advance: the count is only a claim.
        let mut entries = Vec::new();
        for _ in 0..tensors {
            entries.push(self.entry(alignment)?);
        }

        let data = self.at.next_multiple_of(alignment);

        let ends = entries
            .iter()
            .map(|entry| entry.tensor.offset.saturating_add(entry.bytes.unwrap_or(0)));
        match ends.max().unwrap_or(0).checked_add(data) {
            Some(need) if need <= self.size => {}
            Some(need) => {
                return damaged(format!(
                    "the file has {} bytes, its tensors need {need}: it was cut off, so copy it again",
                    self.size
                ));
            }
            None => return damaged("its tensors need more bytes than can be counted".to_owned()),
        }

        header.tensors = located(entries, data, self.size);
        Ok(header)
    }

    /// Reads a metadata value: keeps integers and short lists of strings, skips the rest.
    fn value(&mut self, key: &[u8], kind: u32, header: &mut Header) -> Result<(), GgufError> {
        let is_kept = !key.starts_with(b"tokenizer.") && header.numbers.len() < VALUES_MAX;
        let mut keep = |numbers: Option<Vec<u64>>| {
            if let (true, Some(numbers), Ok(key)) = (is_kept, numbers, str::from_utf8(key)) {
                header.numbers.insert(key.to_owned(), numbers);
            }
        };

        if kind != ARRAY {
            return match scalar_bytes(kind) {
                Some(_) => {
                    let number = self.integer(kind)?;
                    keep(number.map(|number| vec![number]));
                    Ok(())
                }
                None => self.skip_value(kind, 0),
            };
        }

        let element = self.u32()?;
        let length = self.u64()?;

        if key == b"tokenizer.ggml.tokens" {
            header.vocabulary = length;
        } else if !key.starts_with(b"tokenizer.") && length <= STRINGS_MAX && element == STRING {
            let strings = (0..length).map(|_| self.name()).collect::<Result<Vec<_>, _>>()?;
            let strings = strings.into_iter().map(String::from_utf8).collect();
            if let (Ok(key), Ok(strings), true) =
                (str::from_utf8(key), strings, header.strings.len() < VALUES_MAX)
            {
                header.strings.insert(key.to_owned(), strings);
            }
            return Ok(());
        } else if is_kept && length <= LIST_MAX && scalar_bytes(element).is_some() {
            let numbers =
                (0..length).map(|_| self.integer(element)).collect::<Result<Vec<_>, _>>()?;
            keep(numbers.into_iter().collect());
            return Ok(());
        }

        self.skip_elements(element, length, 0)
    }

    /// Reads a value of fixed size; `None` if it is negative or not an integer.
    fn integer(&mut self, kind: u32) -> Result<Option<u64>, GgufError> {
        Ok(match kind {
            0 => Some(u64::from(self.bytes::<1>()?[0])),
            1 => u64::try_from(i8::from_le_bytes(self.bytes()?)).ok(),
            2 => Some(u64::from(u16::from_le_bytes(self.bytes()?))),
            3 => u64::try_from(i16::from_le_bytes(self.bytes()?)).ok(),
            U32 => Some(u64::from(self.u32()?)),
            5 => u64::try_from(i32::from_le_bytes(self.bytes()?)).ok(),
            10 => Some(self.u64()?),
            11 => u64::try_from(i64::from_le_bytes(self.bytes()?)).ok(),
            _ => {
                self.skip(scalar_bytes(kind).unwrap_or(0))?;
                None
            }
        })
    }

    fn entry(&mut self, alignment: u64) -> Result<Entry, GgufError> {
        let name = self.name()?.escape_ascii().to_string();
        let count = self.u32()?;
        if !(1..=4).contains(&count) {
            return damaged(format!("tensor {name} has {count} dimensions"));
        }

        let mut elements = 1_u64;
        let mut dimensions = Vec::with_capacity(4);
        for _ in 0..count {
            let length = self.u64()?;
            dimensions.push(length);
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

        let row = dimensions[0];
        let tensor = Tensor { name, dimensions, kind, offset, bytes: 0 };
        // llama.cpp may know types that are newer than our table; the offset is checked
        // nevertheless.
        let Some((block, bytes)) = block_size(kind) else {
            return Ok(Entry { tensor, bytes: None });
        };

        let name = &tensor.name;
        if !row.is_multiple_of(block) {
            return damaged(format!("tensor {name} has rows of {row}, not a multiple of {block}"));
        }

        let bytes = (elements / block).checked_mul(bytes);
        if bytes.and_then(|bytes| bytes.checked_add(offset)).is_none() {
            return damaged(format!("tensor {name} has an impossible place"));
        }
        Ok(Entry { tensor, bytes })
    }

    fn skip_value(&mut self, kind: u32, depth: u8) -> Result<(), GgufError> {
        match kind {
            STRING => {
                let length = self.u64()?;
                self.skip(length)
            }
            ARRAY => {
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

    fn skip_elements(&mut self, kind: u32, length: u64, depth: u8) -> Result<(), GgufError> {
        match scalar_bytes(kind) {
            Some(width) => self.skip(length.saturating_mul(width)),
            // Each element takes at least eight bytes, so a wrong length fails at the end of the
            // file.
            None => (0..length).try_for_each(|_| self.skip_value(kind, depth + 1)),
        }
    }

    /// A value that is a text; `None` if it is of another type.
    pub(super) fn text_value(&mut self) -> Result<Option<String>, GgufError> {
        if self.u32()? != STRING {
            return Ok(None);
        }
        let mut text = Vec::new();
        self.text(&mut text)?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// A value that is a 32-bit real number; `None` if it is of another type.
    pub(super) fn real_value(&mut self) -> Result<Option<f32>, GgufError> {
        if self.u32()? == F32 {
            self.bytes().map(|bytes| Some(f32::from_le_bytes(bytes)))
        } else {
            Ok(None)
        }
    }

    /// A value that is a non-negative integer; `None` if it is of another type.
    pub(super) fn number_value(&mut self) -> Result<Option<u64>, GgufError> {
        let kind = self.u32()?;
        if scalar_bytes(kind).is_some() { self.integer(kind) } else { Ok(None) }
    }

    /// A value that is a list of integers, with 0 for those that are negative; empty if it is of
    /// another type.
    pub(super) fn number_list(&mut self) -> Result<Vec<u64>, GgufError> {
        if self.u32()? != ARRAY {
            return Ok(Vec::new());
        }
        let (kind, length) = (self.u32()?, self.u64()?);
        if scalar_bytes(kind).is_none() {
            return Ok(Vec::new());
        }
        // Not reserved in advance: the length is only a claim.
        (0..length).map(|_| Ok(self.integer(kind)?.unwrap_or(0))).collect()
    }

    /// Calls `each` with the place and the bytes of each text of a list.
    pub(super) fn each_text(&mut self, mut each: impl FnMut(u64, &[u8])) -> Result<(), GgufError> {
        if self.u32()? != ARRAY || self.u32()? != STRING {
            return Ok(());
        }
        let length = self.u64()?;
        let mut text = Vec::new();
        for at in 0..length {
            self.text(&mut text)?;
            each(at, &text);
        }
        Ok(())
    }

    /// Reads a text of at most [`TEXT_BYTES_MAX`].
    fn text(&mut self, text: &mut Vec<u8>) -> Result<(), GgufError> {
        let length = self.count("bytes of a text", TEXT_BYTES_MAX)?;
        // At most the size of the file, so that a claim alone allocates nothing.
        let length = usize::try_from(length.min(self.size)).unwrap_or(usize::MAX);
        text.resize(length, 0);
        self.fill(text)
    }

    fn name(&mut self) -> Result<Vec<u8>, GgufError> {
        let length = self.count("bytes of a name", NAME_BYTES_MAX)?;
        let mut name = vec![0; usize::try_from(length).expect("invariant: at most NAME_BYTES_MAX")];
        self.fill(&mut name)?;
        Ok(name)
    }

    fn count(&mut self, what: &str, max: u64) -> Result<u64, GgufError> {
        let count = self.u64()?;
        if count > max {
            return damaged(format!("its header claims {count} {what}"));
        }
        Ok(count)
    }

    pub(super) fn u32(&mut self) -> Result<u32, GgufError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        if self.input.read_exact(bytes).is_err() {
            return damaged(format!("the file ends inside its header, after {} bytes", self.size));
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> Result<(), GgufError> {
        let skipped = std::io::copy(&mut self.input.by_ref().take(count), &mut std::io::sink());
        if skipped.unwrap_or(0) != count {
            return damaged(format!("the file ends inside its header, after {} bytes", self.size));
        }
        self.at += count;
        Ok(())
    }
}
