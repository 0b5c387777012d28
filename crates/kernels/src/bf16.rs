//! Values in bf16: the upper half of an f32, kept as its bits.

use crate::element::{self, Element};
use crate::packed::{self, Packed};
use crate::product::{Left, Mode};
use crate::unit::Unit;

/// A value in bf16.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub(crate) u16);

impl Element for Bf16 {
    /// Two neighbours along the inner dimension.
    type Cell = u32;
    const PER_CELL: usize = 2;

    /// Infinities stay; a NaN may become an infinity, which a caller that checks for finite losses
    /// notices as well.
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        Self((bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    fn padded_rows(rows: usize) -> usize {
        Unit::best().padded_rows(rows)
    }

    fn pack(values: &[Self], stride: usize, inner: usize, columns: usize, cells: &mut [u32]) {
        packed::pack_rows(values, stride, inner, columns, cells);
    }

    fn pack_transposed(
        values: &[Self],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [u32],
    ) {
        packed::pack_columns(values, stride, inner, columns, cells);
    }

    fn transpose(
        from: &[Self],
        stride: usize,
        rows: usize,
        columns: usize,
        to: &mut [Self],
        to_stride: usize,
    ) {
        #[cfg(target_arch = "x86_64")]
        if crate::wide::is_wide() && rows.is_multiple_of(32) && columns.is_multiple_of(16) {
            // SAFETY: the processor has AVX-512, as was just asked.
            #[expect(
                unsafe_code,
                reason = "a function with target features is unsafe to call from one without"
            )]
            return unsafe {
                crate::x86::transpose_blocks(from, stride, rows, columns, to, to_stride)
            };
        }
        element::transpose(from, stride, rows, columns, to, to_stride);
    }

    fn multiply(
        left: Left<'_, Self>,
        right: &Packed<Self>,
        columns: usize,
        sum: &mut [f32],
        stride: usize,
        mode: Mode,
    ) {
        Unit::best().multiply(left, right, columns, sum, stride, mode);
    }
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
                assert_eq!(
                    Bf16::from_f32(value).0,
                    half::bf16::from_f32(value).to_bits(),
                    "{value}"
                );
            }
        }
        assert_eq!(Bf16::from_f32(f32::INFINITY).to_f32(), f32::INFINITY);
        assert_eq!(Bf16::from_f32(-1.5).to_f32(), -1.5);
    }
}
