//! Checks that the values of tensors are finite. llama.cpp does not, and one value that is not
//! makes every logit NaN.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use super::Tensor;

/// ggml's types whose values, or scales of blocks, are read here.
const F32: u32 = 0;
const F16: u32 = 1;
const Q8_0: u32 = 8;
const BF16: u32 = 30;

/// Bytes that are read at once: a multiple of every block.
const CHUNK: usize = 34 * 4096;

/// The first of the tensors with a value that is infinite or not a number. Tensors of other types
/// than f32, f16, bf16 and `q8_0` are not read.
///
/// # Errors
/// Those of reading the file.
pub(super) fn first_not_finite<'t>(
    file: &mut File,
    tensors: &'t [Tensor],
) -> io::Result<Option<&'t Tensor>> {
    for tensor in tensors {
        let Some(is_finite) = check_of(tensor.kind) else { continue };
        file.seek(SeekFrom::Start(tensor.offset))?;
        let mut data = BufReader::new(&mut *file).take(tensor.bytes);
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            if (&mut data).take(CHUNK as u64).read_to_end(&mut chunk)? == 0 {
                break;
            }
            if !is_finite(&chunk) {
                return Ok(Some(tensor));
            }
        }
    }
    Ok(None)
}

/// The function that checks that all values of a chunk are finite. A value is not finite if all
/// bits of its exponent are set.
fn check_of(kind: u32) -> Option<fn(&[u8]) -> bool> {
    Some(match kind {
        F32 => |chunk| {
            let values = chunk.as_chunks::<4>().0;
            values.iter().all(|value| f32::from_le_bytes(*value).is_finite())
        },
        F16 => |chunk| has_no_exponent(chunk.as_chunks::<2>().0.iter().copied(), 0x7c00),
        BF16 => |chunk| has_no_exponent(chunk.as_chunks::<2>().0.iter().copied(), 0x7f80),
        // A block is its scale and 32 integers.
        Q8_0 => |chunk| {
            let scales = chunk.as_chunks::<34>().0.iter().map(|block| [block[0], block[1]]);
            has_no_exponent(scales, 0x7c00)
        },
        _ => return None,
    })
}

/// Returns whether no value of 16 bits has all bits of this exponent.
fn has_no_exponent(mut values: impl Iterator<Item = [u8; 2]>, exponent: u16) -> bool {
    values.all(|value| u16::from_le_bytes(value) & exponent != exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The tensor with this data after four others bytes.
    fn found(kind: u32, data: &[u8]) -> bool {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0xff; 4]).unwrap();
        file.write_all(data).unwrap();
        // Bytes that belong to no tensor follow.
        file.write_all(&[0xff; 4]).unwrap();
        let tensor = Tensor { kind, offset: 4, bytes: data.len() as u64, ..Tensor::default() };
        first_not_finite(&mut file, &[tensor]).unwrap().is_some()
    }

    #[test]
    fn values_that_are_not_finite_are_found_in_every_type_that_adapters_have() {
        let f32s = |last: f32| [1.0, -0.0, f32::MAX, last].map(f32::to_le_bytes).concat();
        for (last, is_found) in [
            (f32::MIN_POSITIVE, false),
            (f32::NAN, true),
            (f32::INFINITY, true),
            (f32::NEG_INFINITY, true),
        ] {
            assert_eq!(found(F32, &f32s(last)), is_found, "{last}");
        }

        // 65,504 and -infinity in f16; the largest number and a NaN in bf16.
        let u16s = |values: [u16; 2]| values.map(u16::to_le_bytes).concat();
        assert!(!found(F16, &u16s([0x7bff, 0x8000])));
        assert!(found(F16, &u16s([0x7bff, 0xfc00])));
        assert!(!found(BF16, &u16s([0x7f7f, 0x3f80])));
        assert!(found(BF16, &u16s([0x3f80, 0x7fc1])));

        // The second block's scale; integers of any bits are finite.
        let block = |scale: u16| [&scale.to_le_bytes()[..], &[0xff; 32]].concat();
        assert!(!found(Q8_0, &[block(0x3c00), block(0x0001)].concat()));
        assert!(found(Q8_0, &[block(0x3c00), block(0x7e00)].concat()));
    }

    #[test]
    fn a_value_in_a_later_chunk_is_found() {
        let mut data = vec![0; 3 * CHUNK];
        assert!(!found(F32, &data));
        let end = data.len();
        data[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(found(F32, &data));
    }
}
