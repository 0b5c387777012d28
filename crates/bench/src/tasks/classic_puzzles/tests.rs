//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("blind-maze", 0, "go E", "bumps"),
        ("blind-maze", 0, "go S", "bumps"),
        ("blind-maze", 3, "go S", "moves"),
        ("blind-maze", 4, "go W", "bumps"),
        ("sudoku", 0, "fill 0 0 4", "naked-first"),
        ("sudoku", 0, "fill 0 0 4", "single"),
    ]);
}
