//! Weights to begin with, read from a GGUF that this trainer exported. Whatever else the file is, it is refused with the
//! reason: nothing is guessed, and no length is believed before the bytes are there.

use super::{
    gguf::{ALIGNMENT, metadata, places},
    layout::Layout,
    recipe::Precision,
};

/// Element types: 0 is f32, 1 is f16.
const ELEMENT_BYTES: [usize; 2] = [4, 2];
/// Metadata that may differ from file to file: the name, and the precision, which each tensor says for itself.
const FREE_KEYS: [&str; 2] = ["general.name", "general.file_type"];

/// The flat weights of a file's bytes.
///
/// # Errors
/// Says in which way the file is not an export of this trainer of a model of this architecture.
pub fn weights(bytes: &[u8], layout: &Layout) -> Result<Vec<f32>, String> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4)? != b"GGUF" {
        return Err("it is no GGUF file".to_owned());
    }
    let version = reader.u32()?;
    if version != 3 {
        return Err(format!("it has version {version} of the format, and only 3 is read"));
    }
    let (tensors, keys) = (reader.u64()?, reader.u64()?);
    let found = reader.keys(keys)?;
    let expected = metadata("", layout, Precision::F32);
    let expected = Reader { bytes: &expected.bytes, at: 0 }.keys(expected.count as u64)?;
    if let Some(difference) = difference(&found, &expected) {
        return Err(difference);
    }
    let mut entries = Vec::new();
    for _ in 0..tensors {
        entries.push(reader.entry()?);
    }
    let start = reader.at.next_multiple_of(ALIGNMENT);
    let places = places(layout);
    if entries.len() != places.len() {
        return Err(format!("it has {} tensors, and this model has {}", entries.len(), places.len()));
    }
    let mut weights = vec![0.0; layout.len];
    for place in &places {
        let name = &place.name;
        let entry = entries.iter().find(|entry| entry.name == *name).ok_or(format!("it has no tensor `{name}`"))?;
        if entry.dimensions != place.dimensions() {
            return Err(format!("its tensor `{name}` has another shape"));
        }
        let width = usize::try_from(entry.kind).ok().and_then(|kind| ELEMENT_BYTES.get(kind));
        let width = *width.ok_or(format!("its tensor `{name}` is neither f32 nor f16"))?;
        let at = usize::try_from(entry.offset).ok().and_then(|offset| start.checked_add(offset));
        let mut data = Reader { bytes, at: at.ok_or(CUT)? };
        let target = &mut weights[place.span()];
        for (weight, element) in target.iter_mut().zip(data.take(place.span().len() * width)?.chunks_exact(width)) {
            *weight = match element {
                [a, b] => half::f16::from_le_bytes([*a, *b]).to_f32(),
                [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]),
                _ => f32::NAN,
            };
            if !weight.is_finite() {
                return Err(format!("its tensor `{name}` has a weight that is no finite number"));
            }
        }
    }
    Ok(weights)
}

const CUT: &str = "it is cut short";

type Keys<'a> = Vec<(&'a str, &'a [u8])>;

/// The first key by which a file is not what this trainer would have written.
fn difference(found: &Keys<'_>, expected: &Keys<'_>) -> Option<String> {
    for (key, wanted) in expected.iter().filter(|(key, _)| !FREE_KEYS.contains(key)) {
        let Some((_, value)) = found.iter().find(|(name, _)| name == key) else {
            return Some(format!("it has no `{key}`: only a file that this trainer exported can be begun with"));
        };
        if value != wanted {
            return Some(match (number(value), number(wanted)) {
                (Some(value), Some(wanted)) => {
                    format!("its `{key}` is {value}, and the recipe's model has {wanted}: the architectures must agree")
                }
                _ => format!("its `{key}` is another than this trainer writes"),
            });
        }
    }
    None
}

/// The value of a key of type u32.
fn number(value: &[u8]) -> Option<u32> {
    let bytes = value.strip_prefix(&4u32.to_le_bytes())?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

struct Entry<'a> {
    name: &'a str,
    /// Innermost first.
    dimensions: Vec<u64>,
    kind: u32,
    /// From the start of the data, in bytes.
    offset: u64,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count).ok_or(CUT)?;
        let taken = self.bytes.get(self.at..end).ok_or(CUT)?;
        self.at = end;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| CUT)?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| CUT)?))
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let len = usize::try_from(self.u64()?).map_err(|_| CUT)?;
        std::str::from_utf8(self.take(len)?).map_err(|_| "one of its names is no text".to_owned())
    }

    /// Keys with their values, type included, as bytes.
    fn keys(&mut self, count: u64) -> Result<Keys<'a>, String> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let name = self.text()?;
            let from = self.at;
            let kind = self.u32()?;
            self.skip(kind, true)?;
            keys.push((name, &self.bytes[from..self.at]));
        }
        Ok(keys)
    }

    fn skip(&mut self, kind: u32, may_be_array: bool) -> Result<(), String> {
        let bytes = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            8 => return self.text().map(drop),
            9 if may_be_array => {
                let (element, count) = (self.u32()?, self.u64()?);
                for _ in 0..count {
                    self.skip(element, false)?;
                }
                return Ok(());
            }
            _ => return Err(format!("one of its keys has the unknown type {kind}")),
        };
        self.take(bytes).map(drop)
    }

    fn entry(&mut self) -> Result<Entry<'a>, String> {
        let name = self.text()?;
        let dimensions = (0..self.u32()?.min(4)).map(|_| self.u64()).collect::<Result<_, _>>()?;
        Ok(Entry { name, dimensions, kind: self.u32()?, offset: self.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::gguf::encode;
    use super::super::recipe::Architecture;
    use super::*;

    const SMALL: Architecture = Architecture { d_model: 32, layers: 2, heads: 4, ff: 48, context: 128 };

    #[test]
    fn what_was_exported_is_read_back() {
        let layout = Layout::new(SMALL);
        let written = layout.initialize(3);
        assert_eq!(weights(&encode("a", &layout, &written, Precision::F32), &layout).as_ref(), Ok(&written));
        let halves = weights(&encode("another", &layout, &written, Precision::F16), &layout).expect("an export");
        let largest = written.iter().zip(&halves).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest > 0.0 && largest < 1e-3, "{largest}");
    }

    #[test]
    fn the_shipped_executor_is_read() {
        let layout = Layout::new(Architecture::default());
        let weights = weights(include_bytes!("../../../models/prime-tiny.gguf"), &layout).expect("an export");
        assert!(weights.iter().any(|weight| weight.abs() > 0.1));
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        let layout = Layout::new(SMALL);
        let file = encode("a", &layout, &layout.initialize(3), Precision::F16);
        let refused = |bytes: &[u8]| weights(bytes, &layout).expect_err("not of this model");
        assert_eq!(refused(b"PK\x03\x04"), "it is no GGUF file");
        for len in [0, 3, 30, 4_000, file.len() - 64] {
            assert_eq!(refused(&file[..len]), CUT, "{len} bytes");
        }
        for (architecture, part) in [
            (Architecture { layers: 3, ..SMALL }, "its `llama.block_count` is 3, and the recipe's model has 2"),
            (Architecture { ff: 64, ..SMALL }, "its `llama.feed_forward_length` is 64"),
            (Architecture { heads: 2, ..SMALL }, "its `llama.attention.head_count` is 2"),
        ] {
            let other = Layout::new(architecture);
            let message = refused(&encode("a", &other, &other.initialize(3), Precision::F16));
            assert!(message.contains(part), "{message}");
        }
        let at = file.windows(10).position(|window| window == b"token_embd").expect("named");
        let mut renamed = file.clone();
        renamed[at] = b'x';
        assert_eq!(refused(&renamed), "it has no tensor `token_embd.weight`");
        let mut endless = file.clone();
        endless[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!refused(&endless).is_empty(), "a length that lies");
    }
}
