//! Products of bf16 values on the units of a processor.

use crate::bf16::Bf16;
use crate::element::Element;
use crate::packed::{Packed, SIDE, TILE};
use crate::product::{Left, Mode, check};
use crate::{BLOCK, wide::wide};

/// What carries out products of bf16 values.
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

    /// All that this processor has.
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
    /// As that one.
    pub fn multiply(
        self,
        left: Left<'_, Bf16>,
        right: &Packed<Bf16>,
        columns: usize,
        sum: &mut [f32],
        stride: usize,
        mode: Mode,
    ) {
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

wide! {
    pub fn multiply(left: Left<'_, Bf16>, right: &Packed<Bf16>, columns: usize, sum: &mut [f32], stride: usize, mode: Mode) {
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
                        *lane += first * f32::from_bits(cell << 16) + second * f32::from_bits(cell & 0xffff_0000);
                    }
                }
                sum.copy_from_slice(&lanes);
            }
        }
    }
}
