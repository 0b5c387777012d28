//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("simplex-method", 0, "pivot 2 0", "pivot-entry"),
        ("simplex-method", 1, "pivot 0 0", "whole-pivots"),
        ("simplex-method", 1, "sub 2 3", "whole-pivots"),
        ("simplex-method", 1, "div 0 2", "cleared"),
        ("simplex-method", 2, "sub 2 2", "cleared"),
        ("gaussian-elimination", 0, "swap 0 1", "pivot-row"),
        ("gaussian-elimination", 1, "add 2 0 2", "pivot-row"),
        ("matrix-multiply", 7, "acc 44", "complete"),
        ("symbolic-diff", 1, "(* (* 3 (^ e0 1)) d0)", "rule"),
    ]);
}
