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
}

fn pack_columns(values: &[u16], stride: usize, inner: usize, columns: usize, cells: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    let is_wide = crate::wide::is_wide();
    for column in (0..columns).step_by(SIDE) {
        let tiles = cells[column * inner / 2..][..inner / 2 * SIDE].chunks_exact_mut(TILE);
        for (tile, cells) in tiles.enumerate() {
            let from = &values[column * stride + tile * 2 * SIDE..];
            #[cfg(target_arch = "x86_64")]
            if is_wide {
                // SAFETY: the processor has AVX-512, as was just asked.
                #[expect(unsafe_code, reason = "a function with target features is unsafe to call from one without")]
                unsafe {
                    crate::x86::pack_tile(from, stride, cells);
                }
                continue;
            }
            pack_tile(from, stride, cells);
        }
    }
}

/// A tile's transpose: `from` are 16 rows of 32 values, `stride` apart, each pair of which becomes a cell.
fn pack_tile(from: &[u16], stride: usize, tile: &mut [u32]) {
    for (pair, cells) in tile.chunks_exact_mut(SIDE).enumerate() {
        for (row, cell) in cells.iter_mut().enumerate() {
            let from = &from[row * stride + 2 * pair..][..2];
            *cell = u32::from(from[0]) | u32::from(from[1]) << 16;
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
        let mut portable = vec![0; TILE];
        pack_tile(&turned[16 * inner + 32..], inner, &mut portable);
        assert_eq!(portable, one.cells[3 * TILE..4 * TILE]);
        // The tile of rows 32 to 63 and columns 16 to 31, its fourth pair and second column.
        let cell = one.cells[(2 + 1) * TILE + 3 * SIDE + 1];
        assert_eq!(cell, u32::from(values[38 * columns + 17]) | u32::from(values[39 * columns + 17]) << 16);
    }
}
