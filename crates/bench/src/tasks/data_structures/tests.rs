//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("stack-simulator", 1, "overflow", "failures"),
        ("stack-simulator", 4, "4", "value-read"),
        ("queue-simulator", 1, "full", "failures"),
        ("queue-simulator", 3, "see 1 8", "front-read"),
        ("doubly-linked-list", 1, "link 1 0 -", "place"),
        ("doubly-linked-list", 3, "found 1", "sought-value"),
        ("doubly-linked-list", 4, "found 0", "list-order"),
        ("doubly-linked-list", 5, "stay", "no-effect"),
        ("doubly-linked-list", 7, "error", "no-effect"),
        ("doubly-linked-list", 10, "missing", "list-order"),
        ("doubly-linked-list", 10, "at 2", "list-order"),
        ("hash-table", 0, "3 empty", "home"),
        ("hash-table", 0, "put 2", "scan"),
        ("hash-table", 6, "missing", "scan"),
        ("hash-table", 8, "0 empty", "scan"),
        ("hash-table", 17, "put 0", "put-place"),
        ("hash-table", 17, "full", "put-place"),
        ("lru-cache", 1, "evict 0", "failures"),
        ("lru-cache", 2, "hit 7", "value-read"),
        ("lru-cache", 2, "miss", "failures"),
    ]);
}
