//! Products of f32 values. The packed operand consists of panels of [`BLOCK`] columns, each stored
//! row by row.

use crate::BLOCK;
use crate::element;
use crate::product::{Element, Left, Mode, Packed, check};

impl Element for f32 {
    type Cell = Self;
    const PER_CELL: usize = 1;

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    fn padded_rows(rows: usize) -> usize {
        rows
    }

    fn pack(values: &[Self], stride: usize, inner: usize, columns: usize, cells: &mut [Self]) {
        for (panel, cells) in
            cells.chunks_exact_mut(inner.max(1) * BLOCK).take(columns / BLOCK).enumerate()
        {
            for (row, cells) in cells.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
                cells.copy_from_slice(&values[row * stride + panel * BLOCK..][..BLOCK]);
            }
        }
    }

    fn pack_transposed(
        values: &[Self],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [Self],
    ) {
        for column in (0..columns).step_by(BLOCK) {
            Self::transpose(
                &values[column * stride..],
                stride,
                BLOCK,
                inner,
                &mut cells[column * inner..],
                BLOCK,
            );
        }
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
        if crate::wide::is_wide() && rows.is_multiple_of(16) && columns.is_multiple_of(16) {
            #[expect(
                unsafe_code,
                reason = "a function with target features is unsafe to call from one without"
            )]
            // SAFETY: the processor has AVX-512, as was just asked.
            return unsafe {
                crate::x86::transpose_cells(from, stride, rows, columns, to, to_stride);
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
        if check(left, left.rows, right, columns, sum, stride) {
            #[cfg(target_arch = "x86_64")]
            if crate::wide::is_wide() {
                return crate::x86::multiply_by_panels(left, right, columns, sum, stride, mode);
            }
            portable(left, right, columns, sum, stride, mode);
        }
    }
}

/// Products on any processor, a row of a panel at a time, whose sums fit into registers.
fn portable(
    left: Left<'_, f32>,
    right: &Packed<f32>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    for column in (0..columns).step_by(BLOCK) {
        let panel =
            right.cells[column * right.inner()..][..left.inner * BLOCK].as_chunks::<BLOCK>().0;

        for row in 0..left.rows {
            let values = &left.values[row * left.stride..][..left.inner];
            let sum = &mut sum[row * stride + column..][..BLOCK];
            let mut lanes = [0.0f32; BLOCK];

            for (value, right) in values.iter().zip(panel) {
                for (lane, right) in lanes.iter_mut().zip(right) {
                    *lane += value * right;
                }
            }

            if mode == Mode::Add {
                sum.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
            } else {
                sum.copy_from_slice(&lanes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other tests do not reach this product on a processor with AVX-512.
    #[test]
    fn the_portable_product_is_exact_where_rounding_is() {
        let (rows, inner, columns) = (11, 64, 96);
        let values =
            |count: usize| (0..count).map(|at| (at % 23) as f32 - 11.0).collect::<Vec<_>>();
        let (left, right) = (values(rows * inner), values(inner * columns));
        let mut packed = Packed::default();
        packed.pack(&right, columns, inner, columns);
        for mode in [Mode::Replace, Mode::Add] {
            let mut sum = vec![2.0; rows * columns];
            portable(
                Left { values: &left, stride: inner, rows, inner },
                &packed,
                columns,
                &mut sum,
                columns,
                mode,
            );
            for (at, found) in sum.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let own = (0..inner)
                    .map(|k| left[row * inner + k] * right[k * columns + column])
                    .sum::<f32>();
                // Sums of integers are exact in any order.
                assert_eq!(
                    *found,
                    if mode == Mode::Add { own + 2.0 } else { own },
                    "{row} {column}"
                );
            }
        }
    }
}
