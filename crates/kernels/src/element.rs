//! Conversion of f32 values to elements, and the portable transpose.

use crate::product::Element;
use crate::wide::wide;

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
