//! The right operand of a product in the order in which tiles are read: pairs of neighbours along the inner dimension lie in one
//! 32-bit cell, 16 pairs by 16 columns make a tile, and the tiles of a column stand one behind the other.

use crate::BLOCK;
use crate::wide::wide;

/// Columns of a tile, and pairs of it.
pub(crate) const SIDE: usize = 16;

/// Cells of a tile.
pub(crate) const TILE: usize = SIDE * SIDE;

/// A matrix [inner, columns] of bf16 values. A buffer can be packed again, which does not allocate when it is large enough.
#[derive(Debug, Clone, Default)]
pub struct Packed {
    pub(crate) cells: Vec<u32>,
    inner: usize,
    columns: usize,
}

impl Packed {
    /// Both are multiples of [`BLOCK`].
    pub fn inner(&self) -> usize {
        self.inner
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Packs `values` [inner, columns], rows being `stride` apart.
    pub fn pack(&mut self, values: &[u16], stride: usize, inner: usize, columns: usize) {
        self.resize(inner, columns);
        pack_rows(values, stride, inner, columns, &mut self.cells);
    }

    /// Packs the transpose of `values` [columns, inner], rows being `stride` apart.
    pub fn pack_transposed(&mut self, values: &[u16], stride: usize, inner: usize, columns: usize) {
        self.resize(inner, columns);
        pack_columns(values, stride, inner, columns, &mut self.cells);
    }

    fn resize(&mut self, inner: usize, columns: usize) {
        assert!(
            inner.is_multiple_of(BLOCK) && columns.is_multiple_of(BLOCK),
            "{inner} by {columns} is not made of blocks of {BLOCK}"
        );
        (self.inner, self.columns) = (inner, columns);
        self.cells.resize(inner * columns / 2, 0);
    }
}

wide! {
    pub fn pack_rows(values: &[u16], stride: usize, inner: usize, columns: usize, cells: &mut [u32]) {
        for row in (0..inner).step_by(2) {
            let (upper, lower) = (&values[row * stride..][..columns], &values[(row + 1) * stride..][..columns]);
            let (tile, pair) = (row / (2 * SIDE), row / 2 % SIDE);
            for column in 0..columns / SIDE {
                let to = &mut cells[(column * inner / (2 * SIDE) + tile) * TILE + pair * SIDE..][..SIDE];
                let (upper, lower) = (&upper[column * SIDE..][..SIDE], &lower[column * SIDE..][..SIDE]);
                for ((to, upper), lower) in to.iter_mut().zip(upper).zip(lower) {
                    *to = u32::from(*upper) | u32::from(*lower) << 16;
                }
            }
        }
    }

    pub fn pack_columns(values: &[u16], stride: usize, inner: usize, columns: usize, cells: &mut [u32]) {
        for column in 0..columns {
            let from = values[column * stride..][..inner].chunks_exact(2 * SIDE);
            let first = column / SIDE * (inner / (2 * SIDE)) * TILE + column % SIDE;
            for (tile, from) in from.enumerate() {
                let to = &mut cells[first + tile * TILE..][..(SIDE - 1) * SIDE + 1];
                for (pair, from) in from.chunks_exact(2).enumerate() {
                    to[pair * SIDE] = u32::from(from[0]) | u32::from(from[1]) << 16;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_and_its_transpose_are_packed_alike() {
        let (inner, columns) = (64, 96);
        let values: Vec<u16> = (0..inner * columns).map(|at| at as u16).collect();
        let mut turned = vec![0; inner * columns];
        crate::transpose(&values, columns, inner, columns, &mut turned, inner);
        let (mut one, mut other) = (Packed::default(), Packed::default());
        one.pack(&values, columns, inner, columns);
        other.pack_transposed(&turned, inner, inner, columns);
        assert_eq!(one.cells, other.cells);
        // The tile of rows 32 to 63 and columns 16 to 31, its fourth pair and second column.
        let cell = one.cells[(2 + 1) * TILE + 3 * SIDE + 1];
        assert_eq!(cell, u32::from(values[38 * columns + 17]) | u32::from(values[39 * columns + 17]) << 16);
    }
}
