//! Products of bf16 values on the units of a processor.

use crate::BLOCK;
use crate::bf16::Bf16;
use crate::product::{Element, Left, Mode, Packed, SIDE, TILE, check};
use crate::wide::wide;
use crate::{element, packing};

/// A part of the processor that computes products of bf16 values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tiles of 16 by 32 values (Intel, from Sapphire Rapids on).
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// Dot products of pairs (AVX-512 BF16: AMD from Zen 4 on, Intel from Cooper Lake on).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Any processor: f32 arithmetic on the same values.
    Portable,
}

impl Unit {
    /// The fastest that this processor has and this process may use.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if crate::x86::may_use_tiles() {
                return Self::Amx;
            }
            if crate::x86::has_pairs() {
                return Self::Avx512;
            }
        }
        Self::Portable
    }

    /// All units that this processor has and this process may use.
    pub fn available() -> Vec<Self> {
        let mut units = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if crate::x86::has_pairs() {
                units.push(Self::Avx512);
            }
            if crate::x86::may_use_tiles() {
                units.push(Self::Amx);
            }
        }
        units
    }

    /// [`Element::padded_rows`] of this unit.
    pub const fn padded_rows(self, rows: usize) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx => rows.next_multiple_of(BLOCK),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => rows.next_multiple_of(crate::x86::ROWS),
            Self::Portable => rows,
        }
    }

    /// [`Element::multiply`] on this unit.
    ///
    /// # Panics
    /// Like [`Element::multiply`].
    pub fn multiply(
        self,
        left: Left<'_, Bf16>,
        right: &Packed<Bf16>,
        columns: usize,
        sum: &mut [f32],
        stride: usize,
        mode: Mode,
    ) {
        // The unsafe products below rely on these dimensions.
        if !check(left, self.padded_rows(left.rows), right, columns, sum, stride) {
            return;
        }

        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx => crate::x86::multiply_by_tiles(left, right, columns, sum, stride, mode),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => crate::x86::multiply_by_pairs(left, right, columns, sum, stride, mode),
            Self::Portable => multiply(left, right, columns, sum, stride, mode),
        }
    }
}

impl Element for Bf16 {
    /// Two neighbours along the inner dimension.
    type Cell = u32;
    const PER_CELL: usize = 2;

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::nearest(value)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.widened()
    }

    fn padded_rows(rows: usize) -> usize {
        Unit::best().padded_rows(rows)
    }

    fn pack(values: &[Self], stride: usize, inner: usize, columns: usize, cells: &mut [u32]) {
        packing::pack_rows(values, stride, inner, columns, cells);
    }

    fn pack_transposed(
        values: &[Self],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [u32],
    ) {
        packing::pack_columns(values, stride, inner, columns, cells);
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
            #[expect(
                unsafe_code,
                reason = "a function with target features is unsafe to call from one without"
            )]
            // SAFETY: the processor has AVX-512, as was just asked.
            return unsafe {
                crate::x86::transpose_blocks(from, stride, rows, columns, to, to_stride);
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

wide! {
    pub fn multiply(
        left: Left<'_, Bf16>,
        right: &Packed<Bf16>,
        columns: usize,
        sum: &mut [f32],
        stride: usize,
        mode: Mode,
    ) {
        for column in 0..columns / SIDE {

            let tiles = &right.cells[column * (right.inner() / (2 * SIDE)) * TILE..];
            for row in 0..left.rows {
                let values = &left.values[row * left.stride..][..left.inner];
                let sum = &mut sum[row * stride + column * SIDE..][..SIDE];
                let mut lanes = [0.0f32; SIDE];

                if mode == Mode::Add {
                    lanes.copy_from_slice(sum);
                }
                for (pair, cells) in values.chunks_exact(2).zip(tiles.chunks_exact(SIDE)) {
                    let (first, second) = (pair[0].to_f32(), pair[1].to_f32());
                    for (lane, cell) in lanes.iter_mut().zip(cells) {
                        let (upper, lower) = (cell << 16, cell & 0xffff_0000);
                        *lane += first * f32::from_bits(upper) + second * f32::from_bits(lower);
                    }
                }
                sum.copy_from_slice(&lanes);
            }
        }
    }
}
