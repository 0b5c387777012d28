//! Values in bf16: the upper half of an f32, kept as its bits.

use crate::wide::wide;

/// Rounds to the nearest bf16, halves to even. Infinities stay; a NaN may become an infinity, which a caller that checks for
/// finite losses notices as well.
#[inline(always)]
pub fn narrow_value(value: f32) -> u16 {
    let bits = value.to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The value of bf16 bits.
#[inline(always)]
pub fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

wide! {
    /// Rounds each value.
    pub fn narrow_into(values: &[f32], narrowed: &mut [u16]) {
        for (bits, value) in narrowed.iter_mut().zip(values) {
            *bits = narrow_value(*value);
        }
    }
}

/// `to` [columns, rows] becomes the transpose of `from` [rows, columns], rows of `from` being `stride` apart and those of `to`
/// `to_stride`.
pub fn transpose(from: &[u16], stride: usize, rows: usize, columns: usize, to: &mut [u16], to_stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if crate::wide::is_wide() && rows.is_multiple_of(32) && columns.is_multiple_of(16) {
        // SAFETY: the processor has AVX-512, as was just asked.
        #[expect(unsafe_code, reason = "a function with target features is unsafe to call from one without")]
        return unsafe { crate::x86::transpose_blocks(from, stride, rows, columns, to, to_stride) };
    }
    for column in 0..columns {
        for (row, to) in to[column * to_stride..][..rows].iter_mut().enumerate() {
            *to = from[row * stride + column];
        }
    }
}

/// Values rounded to bf16.
pub fn narrow(values: &[f32]) -> Vec<u16> {
    let mut narrowed = vec![0; values.len()];
    narrow_into(values, &mut narrowed);
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_a_library() {
        let mut state = 1u32;
        for _ in 0..100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(state);
            if value.is_finite() {
                assert_eq!(narrow_value(value), half::bf16::from_f32(value).to_bits(), "{value}");
            }
        }
        assert_eq!(widen(narrow_value(f32::INFINITY)), f32::INFINITY);
        assert_eq!(widen(narrow_value(-1.5)), -1.5);
    }

    #[test]
    fn a_transpose_swaps_rows_and_columns() {
        for (rows, columns) in [(1, 1), (5, 70), (64, 33), (64, 48), (32, 16)] {
            let (stride, to_stride) = (columns + 3, rows + 5);
            let from: Vec<u16> = (0..rows * stride).map(|at| at as u16).collect();
            let mut to = vec![0; columns * to_stride];
            transpose(&from, stride, rows, columns, &mut to, to_stride);
            for row in 0..rows {
                for column in 0..columns {
                    assert_eq!(to[column * to_stride + row], from[row * stride + column]);
                }
            }
        }
    }
}
