//! Matrix products of bf16 values, summed in f32.

use crate::packed::{Packed, SIDE, TILE};
use crate::{BLOCK, wide::wide, widen};

/// The left operand: rows of bf16 values, `stride` apart.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    pub values: &'a [u16],
    pub stride: usize,
    pub rows: usize,
    /// The inner dimension; may be less than that of the right operand, whose further rows are left out.
    pub inner: usize,
}

/// What happens to what the sum holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Replace,
    Add,
}

/// What carries out products.
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

    /// The least number of rows, not fewer than these, that a product can have. What is padded is computed too, and a decoder
    /// often has few rows.
    pub const fn padded_rows(self, rows: usize) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx => rows.next_multiple_of(BLOCK),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => rows.next_multiple_of(crate::x86::ROWS),
            Self::Portable => rows,
        }
    }

    /// `sum` [rows, columns], rows being `stride` apart, becomes `left` times the first `columns` columns of `right`, or gets it
    /// added.
    ///
    /// # Panics
    /// If a dimension is no multiple of [`BLOCK`] (of rows, see [`Unit::padded_rows`]), or an operand is shorter than its
    /// dimensions say.
    pub fn multiply(self, left: Left<'_>, right: &Packed, columns: usize, sum: &mut [f32], stride: usize, mode: Mode) {
        let Left { values, stride: left_stride, rows, inner } = left;
        assert!(
            rows == self.padded_rows(rows) && inner.is_multiple_of(BLOCK) && columns.is_multiple_of(BLOCK),
            "{rows} by {inner} by {columns} is not made of blocks of {BLOCK}"
        );
        if rows == 0 || columns == 0 {
            return;
        }
        assert!(inner <= right.inner() && columns <= right.columns(), "the right operand is too small");
        assert!(
            inner <= left_stride && values.len() >= (rows - 1) * left_stride + inner,
            "the left operand is too short"
        );
        assert!(columns <= stride && sum.len() >= (rows - 1) * stride + columns, "the sum is too short");
        assert!(right.cells.len() >= right.inner() * right.columns() / 2, "the right operand is whole");
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
    pub fn multiply(left: Left<'_>, right: &Packed, columns: usize, sum: &mut [f32], stride: usize, mode: Mode) {
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
                    let (first, second) = (widen(pair[0]), widen(pair[1]));
                    for (lane, cell) in lanes.iter_mut().zip(cells) {
                        *lane += first * f32::from_bits(cell << 16) + second * f32::from_bits(cell & 0xffff_0000);
                    }
                }
                sum.copy_from_slice(&lanes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::narrow;

    fn random(count: usize, seed: u32) -> Vec<u16> {
        let mut state = seed;
        let values: Vec<f32> = (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect();
        narrow(&values)
    }

    /// Every unit against sums in f64, with rows and columns that are left out and padding that must stay as it is.
    #[test]
    fn every_unit_multiplies() {
        for (rows, inner, columns) in [(32, 32, 32), (64, 128, 384), (96, 352, 64), (64, 640, 256), (32, 0, 32)] {
            let (left_stride, stride, right_inner, right_columns) = (inner + 8, columns + 5, inner + 32, columns + 32);
            let left = random(rows * left_stride, 1);
            let right = random(right_inner * right_columns, 2);
            let mut packed = Packed::default();
            packed.pack(&right, right_columns, right_inner, right_columns);
            let exact = |row: usize, column: usize| -> f64 {
                (0..inner)
                    .map(|at| {
                        f64::from(widen(left[row * left_stride + at]))
                            * f64::from(widen(right[at * right_columns + column]))
                    })
                    .sum()
            };
            for unit in Unit::available() {
                for (mode, before) in [(Mode::Replace, 0.0), (Mode::Add, 3.0)] {
                    let mut sum = vec![3.0; rows * stride];
                    let operand = Left { values: &left, stride: left_stride, rows, inner };
                    unit.multiply(operand, &packed, columns, &mut sum, stride, mode);
                    for row in 0..rows {
                        for column in 0..columns {
                            let (found, wanted) = (f64::from(sum[row * stride + column]), exact(row, column) + before);
                            assert!(
                                (found - wanted).abs() < 2e-5 * (inner + 1) as f64,
                                "{unit:?} {row} {column}: {found}, not {wanted}"
                            );
                        }
                        assert!(sum[row * stride + columns..(row + 1) * stride].iter().all(|value| *value == 3.0));
                    }
                }
            }
        }
    }

    /// As many rows as a decoder has: each is what it is among others.
    #[test]
    fn few_rows_are_multiplied_alike() {
        let (inner, columns) = (64, 32);
        let left = random(BLOCK * inner, 1);
        let mut right = Packed::default();
        right.pack(&random(inner * columns, 2), columns, inner, columns);
        for unit in Unit::available() {
            let product = |rows: usize| {
                let mut sum = vec![0.0; rows * columns];
                let left = Left { values: &left, stride: inner, rows, inner };
                unit.multiply(left, &right, columns, &mut sum, columns, Mode::Replace);
                sum
            };
            let whole = product(BLOCK);
            for rows in [1, 8, 9, 25] {
                let rows = unit.padded_rows(rows);
                assert!(product(rows) == whole[..rows * columns], "{unit:?}: {rows} rows");
            }
        }
    }

    #[test]
    #[should_panic(expected = "the left operand is too short")]
    fn an_operand_that_is_too_short_is_refused() {
        let mut packed = Packed::default();
        packed.pack(&[0; 1024], 32, 32, 32);
        let left = Left { values: &[0; 1023], stride: 32, rows: 32, inner: 32 };
        Unit::best().multiply(left, &packed, 32, &mut [0.0; 1024], 32, Mode::Replace);
    }
}
