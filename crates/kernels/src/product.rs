//! Matrix products, summed in f32: the operands, and the trait of the values that are multiplied.
//! The other files build on this one, which imports none of them.

use std::fmt::Debug;

use crate::BLOCK;

/// The left operand: rows of values, `stride` apart.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a, E> {
    /// The rows, each in `inner` adjacent values.
    pub values: &'a [E],
    /// Values from the start of a row to the start of the next one, at least `inner`.
    pub stride: usize,
    /// Number of rows.
    pub rows: usize,
    /// The inner dimension. It may be less than that of the right operand, whose remaining rows
    /// are then ignored.
    pub inner: usize,
}

/// What happens to the previous contents of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The product takes their place.
    Replace,
    /// The product is added to them.
    Add,
}

/// A value that products multiply; their sums are f32.
pub trait Element: Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    /// The unit of a packed operand's memory.
    type Cell: Copy + Default + Debug + PartialEq + Send + Sync;
    /// Elements per cell.
    const PER_CELL: usize;

    /// The nearest element, halves to even.
    fn from_f32(value: f32) -> Self;
    /// The value as f32, which holds it exactly.
    fn to_f32(self) -> f32;

    /// The least number of rows, at least `rows`, that a product can have. Padding is computed
    /// like the rest, and a decoder often has few rows, so this is smaller than a block where the
    /// unit allows it.
    fn padded_rows(rows: usize) -> usize;

    /// Implements [`Packed::pack`]; `cells` has exactly the length that the matrix takes.
    fn pack(values: &[Self], stride: usize, inner: usize, columns: usize, cells: &mut [Self::Cell]);

    /// Implements [`Packed::pack_transposed`], with `cells` as for [`pack`](Self::pack).
    fn pack_transposed(
        values: &[Self],
        stride: usize,
        inner: usize,
        columns: usize,
        cells: &mut [Self::Cell],
    );

    /// Writes the transpose of `from` [rows, columns] to `to` [columns, rows]. Rows of `from` are
    /// `stride` apart, those of `to` `to_stride`.
    fn transpose(
        from: &[Self],
        stride: usize,
        rows: usize,
        columns: usize,
        to: &mut [Self],
        to_stride: usize,
    );

    /// Multiplies `left` by the first `columns` columns of `right`, and replaces `sum` [rows,
    /// columns], whose rows are `stride` apart, by the product or adds it.
    ///
    /// # Panics
    /// If a dimension is not a multiple of [`BLOCK`](crate::BLOCK) (for rows, see
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

/// Columns of a tile, and its rows of pairs.
pub(crate) const SIDE: usize = 16;

/// Cells of a tile.
pub(crate) const TILE: usize = SIDE * SIDE;

/// The right operand of a product: a matrix [inner, columns] in the order in which it is read. A
/// buffer can be packed again, which does not allocate when it is large enough.
#[derive(Debug, Clone, Default)]
pub struct Packed<E: Element> {
    pub(crate) cells: Vec<E::Cell>,
    inner: usize,
    columns: usize,
}

impl<E: Element> Packed<E> {
    /// The inner dimension; like the columns a multiple of [`BLOCK`].
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// The number of columns, a multiple of [`BLOCK`].
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Packs `values` [inner, columns], rows being `stride` apart.
    pub fn pack(&mut self, values: &[E], stride: usize, inner: usize, columns: usize) {
        self.resize(inner, columns);
        E::pack(values, stride, inner, columns, &mut self.cells);
    }

    /// Packs the transpose of `values` [columns, inner], rows being `stride` apart.
    pub fn pack_transposed(&mut self, values: &[E], stride: usize, inner: usize, columns: usize) {
        self.resize(inner, columns);
        E::pack_transposed(values, stride, inner, columns, &mut self.cells);
    }

    fn resize(&mut self, inner: usize, columns: usize) {
        assert!(
            inner.is_multiple_of(BLOCK) && columns.is_multiple_of(BLOCK),
            "{inner} by {columns} is not made of blocks of {BLOCK}"
        );
        (self.inner, self.columns) = (inner, columns);
        self.cells.resize(inner * columns / E::PER_CELL, E::Cell::default());
    }
}

/// Checks a product's dimensions, and returns whether there is anything to compute. `padded_rows`
/// is the number of rows that the left operand must have.
///
/// # Panics
/// Like [`Element::multiply`].
pub fn check<E: Element>(
    left: Left<'_, E>,
    padded_rows: usize,
    right: &Packed<E>,
    columns: usize,
    sum: &[f32],
    stride: usize,
) -> bool {
    let Left { values, stride: left_stride, rows, inner } = left;
    assert!(
        rows == padded_rows && inner.is_multiple_of(BLOCK) && columns.is_multiple_of(BLOCK),
        "{rows} by {inner} by {columns} is not made of blocks of {BLOCK}"
    );

    // An empty product has no last row, whose end the lengths below are computed from.
    if rows == 0 || columns == 0 {
        return false;
    }

    assert!(inner <= right.inner() && columns <= right.columns(), "the right operand is too small");
    assert!(
        inner <= left_stride && values.len() >= (rows - 1) * left_stride + inner,
        "the left operand is too short"
    );

    assert!(
        columns <= stride && sum.len() >= (rows - 1) * stride + columns,
        "the sum is too short"
    );
    assert!(
        right.cells.len() >= right.inner() * right.columns() / E::PER_CELL,
        "the right operand is whole"
    );

    true
}
