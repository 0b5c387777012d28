//! What products multiply, and its conversion from and to f32.

use std::fmt::Debug;

use crate::packed::Packed;
use crate::product::{Left, Mode};
use crate::wide::wide;

/// The values that a product multiplies; its sums are f32.
pub trait Element: Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// What a packed operand is made of.
    type Cell: Copy + Default + Debug + PartialEq + Send + Sync;
    /// Elements of a cell.
    const PER_CELL: usize;

    /// The nearest element, halves to even.
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;

    /// The least number of rows, not fewer than these, that a product can have. What is padded is
    /// computed too, and a decoder often has few rows.
    fn padded_rows(rows: usize) -> usize;

    /// [`Packed::pack`], into as many cells as that takes.
    fn pack(values: &[Self], stride: usize, inner: usize, columns: usize, cells: &mut [Self::Cell]);

    /// [`Packed::pack_transposed`], likewise.
    fn pack_transposed(
        values: &[Self],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [Self::Cell],
    );

    /// `to` [columns, rows] becomes the transpose of `from` [rows, columns], rows of `from` being
    /// `stride` apart and those of `to` `to_stride`.
    fn transpose(
        from: &[Self],
        stride: usize,
        rows: usize,
        columns: usize,
        to: &mut [Self],
        to_stride: usize,
    );

    /// `sum` [rows, columns], rows being `stride` apart, becomes `left` times the first `columns`
    /// columns of `right`, or gets it added.
    ///
    /// # Panics
    /// If a dimension is no multiple of [`BLOCK`](crate::BLOCK) (of rows, see
    /// [`padded_rows`](Self::padded_rows)), or an operand is shorter than its dimensions say.
    fn multiply(
        left: Left<'_, Self>,
        right: &Packed<Self>,
        columns: usize,
        sum: &mut [f32],
        stride: usize,
        mode: Mode,
    );
}

wide! {
    /// Rounds each value.
    pub fn round_into<E>(values: &[f32], rounded: &mut [E]) {
        for (element, value) in rounded.iter_mut().zip(values) {
            *element = E::from_f32(*value);
        }
    }
}

/// Values rounded to elements.
pub fn rounded<E: Element>(values: &[f32]) -> Vec<E> {
    let mut rounded = vec![E::default(); values.len()];
    round_into(values, &mut rounded);
    rounded
}

/// A transpose element by element.
pub fn transpose<E: Element>(
    from: &[E],
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [E],
    to_stride: usize,
) {
    for column in 0..columns {
        for (row, to) in to[column * to_stride..][..rows].iter_mut().enumerate() {
            *to = from[row * stride + column];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bf16;

    fn a_transpose_swaps_rows_and_columns<E: Element>() {
        for (rows, columns) in [(1, 1), (5, 70), (64, 33), (64, 48), (32, 16), (16, 32)] {
            let (stride, to_stride) = (columns + 3, rows + 5);
            let from: Vec<E> = rounded(&(0..rows * stride).map(|at| at as f32).collect::<Vec<_>>());
            let mut to = vec![E::default(); columns * to_stride];
            E::transpose(&from, stride, rows, columns, &mut to, to_stride);
            for row in 0..rows {
                for column in 0..columns {
                    assert_eq!(to[column * to_stride + row], from[row * stride + column]);
                }
            }
        }
    }

    #[test]
    fn transposes_swap_rows_and_columns() {
        a_transpose_swaps_rows_and_columns::<Bf16>();
        a_transpose_swaps_rows_and_columns::<f32>();
    }
}
