//! Matrix products on strided views of slices: the one place in `train` with `unsafe`.
//! It checks every bound before it hands pointers to `gemm`, and it never starts a thread.

/// A read-only matrix inside a slice.
#[derive(Clone, Copy)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

/// A matrix inside a slice that a product is written to; its rows are contiguous.
pub struct ViewMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
}

fn fits(len: usize, rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> bool {
    rows == 0 || cols == 0 || (rows - 1) * row_stride + (cols - 1) * col_stride < len
}

impl<'a> View<'a> {
    /// `rows` x `cols`, row after row.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    pub fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        assert!(
            fits(data.len(), rows, cols, row_stride, 1),
            "invariant: the view lies in its slice"
        );
        Self {
            data,
            rows,
            cols,
            row_stride,
            col_stride: 1,
        }
    }

    pub fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

impl<'a> ViewMut<'a> {
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    pub fn strided(data: &'a mut [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        assert!(
            cols <= row_stride || rows <= 1,
            "invariant: rows do not overlap"
        );
        assert!(
            fits(data.len(), rows, cols, row_stride, 1),
            "invariant: the view lies in its slice"
        );
        Self {
            data,
            rows,
            cols,
            row_stride,
        }
    }
}

/// `target = left * right`
pub fn product(target: ViewMut<'_>, left: View<'_>, right: View<'_>) {
    multiply(target, left, right, false);
}

/// `target += left * right`
pub fn add_product(target: ViewMut<'_>, left: View<'_>, right: View<'_>) {
    multiply(target, left, right, true);
}

#[allow(unsafe_code)]
fn multiply(target: ViewMut<'_>, left: View<'_>, right: View<'_>, add: bool) {
    assert_eq!(left.cols, right.rows, "invariant: inner dimensions agree");
    assert_eq!(
        (target.rows, target.cols),
        (left.rows, right.cols),
        "invariant: outer dimensions agree"
    );
    if target.rows == 0 || target.cols == 0 {
        return;
    }
    // SAFETY: the constructors proved that every index of the three views lies in its slice, rows of the target
    // do not overlap, and `&mut` proves that the target aliases neither factor. `gemm` reads and writes exactly
    // rows x cols elements at these strides.
    unsafe {
        gemm::gemm(
            target.rows,
            target.cols,
            left.cols,
            target.data.as_mut_ptr(),
            1,
            target.row_stride as isize,
            add,
            left.data.as_ptr(),
            left.col_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.col_stride as isize,
            right.row_stride as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_strided_and_transposed_views() {
        let left: Vec<f32> = (0..12).map(|x| x as f32).collect(); // 3 x 4
        let right: Vec<f32> = (0..10).map(|x| 1.0 - x as f32).collect(); // 2 x 5, first 4 columns used, transposed
        let mut target = vec![1.0f32; 9];
        add_product(
            ViewMut::strided(&mut target, 3, 2, 3),
            View::new(&left, 3, 4),
            View::strided(&right, 2, 4, 5).transposed(),
        );
        for row in 0..3 {
            for col in 0..2 {
                let sum: f32 = (0..4).map(|k| left[row * 4 + k] * right[col * 5 + k]).sum();
                assert_eq!(target[row * 3 + col], 1.0 + sum);
            }
            assert_eq!(target[row * 3 + 2], 1.0);
        }
    }

    #[test]
    #[should_panic(expected = "inner dimensions agree")]
    fn mismatched_shapes_panic_before_any_pointer_is_used() {
        let data = [0.0f32; 6];
        let mut target = [0.0f32; 4];
        product(
            ViewMut::new(&mut target, 2, 2),
            View::new(&data, 2, 3),
            View::new(&data, 2, 2),
        );
    }
}
