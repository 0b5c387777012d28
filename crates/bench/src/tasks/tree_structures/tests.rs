//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("huffman-tree", 1, "code 0 0", "one-tree"),
        ("huffman-tree", 1, "done", "optimal"),
    ]);
}
