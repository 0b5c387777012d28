//! Lines and traces that the constraints of this category find wrong.

use crate::tasks::fooled::{Fooling, assert_found};
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
        ("lru-cache", 3, "evict 0", "least-recent"),
        ("lru-cache", 5, "evict 2", "failures"),
        ("hash-table", 17, "put 4", "put-place"),
        ("union-find", 1, "root 0", "true-root"),
        ("union-find", 2, "link 0 1", "joined"),
        ("union-find", 2, "link 2 3", "joined"),
        ("union-find", 2, "same", "joined"),
    ]);
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "lru-cache",
            input: "",
            lines: &["insert", "insert", "hit 5", "evict 0", "hit 7", "evict 1"],
            at: 3,
            constraint: "least-recent",
        },
        Fooling {
            task: "lru-cache",
            input: r#"{"capacity":2,"operations":["put 0 5","put 1 7","put 0 6"]}"#,
            lines: &["insert", "insert", "evict 1"],
            at: 2,
            constraint: "failures",
        },
        Fooling {
            task: "hash-table",
            input: r#"{"slots":5,"multiplier":2,"offset":1,"operations":["insert 3","search 13",
                "delete 3","search 8","insert 13","insert 8"]}"#,
            lines: &[
                "2 empty", "put 2", "2 other", "3 empty", "missing", "2 hit", "del 2", "2 tomb",
                "3 empty", "missing", "2 tomb", "3 empty", "put 3", "2 tomb", "3 other", "4 empty",
                "put 2",
            ],
            at: 12,
            constraint: "put-place",
        },
        Fooling {
            task: "union-find",
            input: "",
            lines: &[
                "root 0", "root 3", "link 3 0", "root 2", "root 0", "link 2 0", "root 4", "root 0",
                "link 4 0", "root 0", "root 0", "root 1", "link 1 0", "root 0", "root 0", "same",
            ],
            at: 1,
            constraint: "true-root",
        },
        Fooling {
            task: "union-find",
            input: r#"{"elements":2,"operations":["union 0 1"]}"#,
            lines: &["root 0", "root 1", "link 0 1"],
            at: 2,
            constraint: "joined",
        },
    ]);
}
