//! The element types of tensors in a GGUF file: ggml's codes, their sizes and encodings.

use serde::{Deserialize, Serialize};

/// Weights that share a scale in [`Precision::Q8_0`].
pub const BLOCK: usize = 32;
/// Bytes of such a block: the scale in 16 bits, then the weights in 8 each.
const BLOCK_BYTES: usize = 2 + BLOCK;

/// Element type of the exported matrices; norm gains are always f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Precision {
    /// 4 bytes per weight.
    F32,
    /// 2 bytes per weight, IEEE half precision.
    #[default]
    F16,
    /// 8 bits and a common scale for each 32 weights of a row; d_model and ff must be multiples of
    /// 32.
    Q8_0,
}

impl Precision {
    /// ggml's code for the type.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q8_0 => 8,
        }
    }

    /// The type with this ggml code, if this trainer writes it.
    pub(crate) fn of_code(code: u32) -> Option<Self> {
        [Self::F32, Self::F16, Self::Q8_0].into_iter().find(|precision| precision.code() == code)
    }

    /// llama.cpp's code for a file whose matrices have this type.
    pub(crate) fn file_type(self) -> usize {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q8_0 => 7,
        }
    }

    /// Size of this many weights in bytes; for `Q8_0`, they must be whole blocks.
    pub(crate) fn bytes(self, weights: usize) -> usize {
        match self {
            Self::F32 => weights * 4,
            Self::F16 => weights * 2,
            Self::Q8_0 => weights / BLOCK * BLOCK_BYTES,
        }
    }

    /// Appends weights, rounded to this type.
    pub(crate) fn encode(self, weights: &[f32], out: &mut Vec<u8>) {
        match self {
            Self::F32 => out.extend(weights.iter().flat_map(|weight| weight.to_le_bytes())),
            Self::F16 => out.extend(
                weights.iter().flat_map(|&weight| half::f16::from_f32(weight).to_le_bytes()),
            ),
            Self::Q8_0 => weights.chunks_exact(BLOCK).for_each(|block| {
                let largest =
                    block.iter().fold(0.0, |largest: f32, weight| largest.max(weight.abs()));

                let scale = half::f16::from_f32(largest / 127.0);
                out.extend(scale.to_le_bytes());
                // Weights are divided by the scale as the file holds it, in 16 bits.
                let scale = scale.to_f32();

                let rounded = |weight: &f32| {
                    if scale > 0.0 { (weight / scale).round().clamp(-127.0, 127.0) } else { 0.0 }
                };

                out.extend(block.iter().map(|weight| (rounded(weight) as i8).cast_unsigned()));
            }),
        }
    }

    /// The weights in a tensor's bytes.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Self::F32 => {
                bytes.as_chunks().0.iter().map(|element| f32::from_le_bytes(*element)).collect()
            }
            Self::F16 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|element| half::f16::from_le_bytes(*element).to_f32())
                .collect(),
            Self::Q8_0 => bytes
                .as_chunks::<BLOCK_BYTES>()
                .0
                .iter()
                .flat_map(|[low, high, rounded @ ..]| {
                    let scale = half::f16::from_le_bytes([*low, *high]).to_f32();
                    rounded.map(|weight| f32::from(weight.cast_signed()) * scale)
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_are_a_scale_and_whole_numbers() {
        let mut weights = [0.0; 2 * BLOCK];
        weights[0] = 127.0;
        weights[1] = -63.4;

        weights[31] = 0.6;
        let mut bytes = Vec::new();
        Precision::Q8_0.encode(&weights, &mut bytes);

        // 1.0 in 16 bits is 0x3c00; -63 is 0xc1.
        assert_eq!((bytes.len(), &bytes[..4], bytes[33]), (68, &[0x00, 0x3c, 127, 0xc1][..], 1));
        assert_eq!(bytes[34..], [0; 34], "a block of zeros");

        let read = Precision::Q8_0.decode(&bytes);
        assert_eq!(
            (read.len(), read[0], read[1], read[31], read[32]),
            (64, 127.0, -63.0, 1.0, 0.0)
        );
    }

    #[test]
    fn a_weight_that_16_bits_hold_is_read_back() {
        for precision in [Precision::F32, Precision::F16] {
            let mut bytes = Vec::new();
            precision.encode(&[0.5, -3.0, 0.0], &mut bytes);
            assert_eq!(
                (bytes.len(), precision.decode(&bytes)),
                (precision.bytes(3), vec![0.5, -3.0, 0.0])
            );
        }
    }
}
