//! Packing of bf16 matrices into the tiles in which a product reads its right operand. Pairs of
//! neighbours along the inner dimension lie in one 32-bit cell, 16 pairs by 16 columns make a tile,
//! and the tiles of a column follow one another.

use crate::bf16::Bf16;
use crate::product::{SIDE, TILE};
use crate::wide::wide;

wide! {
    /// Packs a matrix [inner, columns] whose rows are `stride` apart.
    pub fn pack_rows(
        values: &[Bf16],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [u32],
    ) {
        for row in (0..inner).step_by(2) {
            let upper = &values[row * stride..][..columns];
            let lower = &values[(row + 1) * stride..][..columns];

            let (tile, pair) = (row / (2 * SIDE), row / 2 % SIDE);
            // The tiles of a column lie together, as a product reads them one after another.
            for column in 0..columns / SIDE {
                let start = (column * inner / (2 * SIDE) + tile) * TILE + pair * SIDE;
                let to = &mut cells[start..][..SIDE];
                let upper = &upper[column * SIDE..][..SIDE];
                let lower = &lower[column * SIDE..][..SIDE];

                for ((to, upper), lower) in to.iter_mut().zip(upper).zip(lower) {
                    *to = u32::from(upper.0) | u32::from(lower.0) << 16;
                }
            }
        }
    }
}

/// Packs the transpose of a matrix [columns, inner] whose rows are `stride` apart.
pub fn pack_columns(
    values: &[Bf16],
    stride: usize,
    inner: usize,
    columns: usize,
    cells: &mut [u32],
) {
    #[cfg(target_arch = "x86_64")]
    let is_wide = crate::wide::is_wide();

    for column in (0..columns).step_by(SIDE) {
        let tiles = cells[column * inner / 2..][..inner / 2 * SIDE].chunks_exact_mut(TILE);
        for (tile, cells) in tiles.enumerate() {
            let from = &values[column * stride + tile * 2 * SIDE..];

            #[cfg(target_arch = "x86_64")]
            if is_wide {
                #[expect(
                    unsafe_code,
                    reason = "a function with target features is unsafe to call from one without"
                )]
                // SAFETY: the processor has AVX-512, as was just asked.
                unsafe {
                    crate::x86::pack_tile(from, stride, cells);
                }
                continue;
            }

            pack_tile(from, stride, cells);
        }
    }
}

/// Packs the transpose of one tile: `from` has 16 rows of 32 values, `stride` apart, each pair of
/// which becomes a cell.
fn pack_tile(from: &[Bf16], stride: usize, tile: &mut [u32]) {
    for (pair, cells) in tile.chunks_exact_mut(SIDE).enumerate() {
        for (row, cell) in cells.iter_mut().enumerate() {
            let from = &from[row * stride + 2 * pair..][..2];
            *cell = u32::from(from[0].0) | u32::from(from[1].0) << 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{self, rounded};
    use crate::{BLOCK, Element, Packed};

    const INNER: usize = 64;
    const COLUMNS: usize = 96;

    /// A matrix of different values, its transpose, and both packed.
    fn packed<E: Element>(at: impl Fn(usize) -> E) -> (Vec<E>, Vec<E>, [Packed<E>; 2]) {
        let values: Vec<E> = (0..INNER * COLUMNS).map(at).collect();
        let mut turned = vec![E::default(); INNER * COLUMNS];
        element::transpose(&values, COLUMNS, INNER, COLUMNS, &mut turned, INNER);

        let mut both = [Packed::default(), Packed::default()];
        both[0].pack(&values, COLUMNS, INNER, COLUMNS);
        both[1].pack_transposed(&turned, INNER, INNER, COLUMNS);

        (values, turned, both)
    }

    #[test]
    fn a_matrix_and_its_transpose_are_packed_alike() {
        let (values, turned, [one, other]) = packed(|at| Bf16(at as u16));
        assert_eq!(one.cells, other.cells);

        let mut portable = vec![0; TILE];
        pack_tile(&turned[16 * INNER + 32..], INNER, &mut portable);
        assert_eq!(portable, one.cells[3 * TILE..4 * TILE]);

        // The tile of rows 32 to 63 and columns 16 to 31, its fourth pair and second column.
        let cell = one.cells[(2 + 1) * TILE + 3 * SIDE + 1];
        assert_eq!(
            cell,
            u32::from(values[38 * COLUMNS + 17].0) | u32::from(values[39 * COLUMNS + 17].0) << 16
        );
    }

    #[test]
    fn a_matrix_and_its_transpose_are_packed_alike_in_f32() {
        let (values, _, [one, other]) = packed(|at| at as f32);
        assert_eq!(one.cells, other.cells);
        assert_eq!(one.cells[INNER * BLOCK + 38 * BLOCK + 5], values[38 * COLUMNS + BLOCK + 5]);
        assert_eq!(rounded::<f32>(&values), values);
    }
}
