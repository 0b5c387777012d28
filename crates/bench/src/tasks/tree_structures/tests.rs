//! Lines and traces that the constraints of this category find wrong.

use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("huffman-tree", 1, "code 0 0", "one-tree"),
        ("huffman-tree", 1, "done", "optimal"),
        ("huffman-tree", 0, "merge 4 1", "lightest"),
        ("huffman-tree", 5, "code 0 1", "read-off"),
        ("bst-inorder", 1, "pop 2", "cursor"),
        ("bst-inorder", 8, "push 1", "cursor"),
        ("heap-operations", 2, "insert 8", "settled"),
        ("heap-operations", 5, "swap 3 0", "sift-path"),
        ("heap-operations", 8, "swap 0 2", "sift-path"),
        ("red-black-insert", 1, "left 3 7", "settled"),
        ("red-black-insert", 5, "case2 10", "repair"),
        ("red-black-insert", 5, "case3 10", "repair"),
        ("red-black-insert", 6, "black 18", "repair"),
        ("red-black-insert", 8, "case1 22", "repair"),
    ]);
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "huffman-tree",
            input: r#"{"freq":[1,2,3,3]}"#,
            lines: &[
                "merge 0 2",
                "merge 1 3",
                "merge 4 5",
                "code 0 00",
                "code 1 10",
                "code 2 01",
                "code 3 11",
                "done",
            ],
            at: 0,
            constraint: "lightest",
        },
        Fooling {
            task: "huffman-tree",
            input: r#"{"freq":[1,1]}"#,
            lines: &["merge 0 1", "code 0 1", "code 1 0", "done"],
            at: 1,
            constraint: "read-off",
        },
        Fooling {
            task: "bst-inorder",
            input: "",
            lines: &[
                "push 2", "push 4", "push 0", "pop 0", "pop 4", "push 5", "pop 5", "pop 2",
                "push 1", "pop 1", "push 3", "pop 3", "done",
            ],
            at: 8,
            constraint: "cursor",
        },
        Fooling {
            task: "heap-operations",
            input: r#"{"ops":["insert 3","insert 8","insert 1","insert 1","extract","insert 2"]}"#,
            lines: &[
                "insert 3", "insert 8", "insert 1", "swap 2 0", "insert 1", "extract", "insert 2",
                "swap 3 1", "done",
            ],
            at: 5,
            constraint: "settled",
        },
        Fooling {
            task: "heap-operations",
            input: r#"{"ops":["insert 1","insert 2","insert 2","insert 9","extract"]}"#,
            lines: &["insert 1", "insert 2", "insert 2", "insert 9", "extract", "swap 0 2", "done"],
            at: 5,
            constraint: "sift-path",
        },
        Fooling {
            task: "red-black-insert",
            input: r#"{"keys":[892,462,315,199,236]}"#,
            lines: &[
                "root 892",
                "black 892",
                "left 462 892",
                "left 315 462",
                "case3 315",
                "left 199 315",
                "case1 199",
                "right 236 199",
                "case2 236",
                "case3 199",
                "case1 199",
                "black 462",
                "done",
            ],
            at: 7,
            constraint: "settled",
        },
        Fooling {
            task: "red-black-insert",
            input: r#"{"keys":[892,462,315,199,236]}"#,
            lines: &[
                "root 892",
                "black 892",
                "left 462 892",
                "left 315 462",
                "case3 315",
                "left 199 315",
                "case1 199",
                "black 462",
                "right 236 199",
                "case2 236",
                "case3 199",
                "case1 199",
                "black 462",
                "done",
            ],
            at: 11,
            constraint: "repair",
        },
    ]);
}
