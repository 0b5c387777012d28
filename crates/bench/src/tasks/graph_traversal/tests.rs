//! Lines and traces that the constraints of this category find wrong.

use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("floyd-warshall", 2, "set 1 3 15", "improves"),
        ("floyd-warshall", 1, "set 1 3 14", "by-way-of-k"),
        ("floyd-warshall", 3, "set 1 3 15", "scan"),
        ("floyd-warshall", 3, "mid 1", "round-complete"),
        ("floyd-warshall", 4, "mid 2", "rounds"),
        ("floyd-warshall", 4, "done", "rounds"),
        ("topological-sort", 0, "emit 5", "first-in-first-out"),
        ("topological-sort", 2, "emit 5", "successors"),
        ("topological-sort", 1, "dec 0 0", "dec"),
        ("topological-sort", 1, "dec 3 0", "dec"),
        ("topological-sort", 2, "dec 0 0", "scan"),
        ("bfs-on-graph", 0, "visit 3", "head"),
        ("bfs-on-graph", 2, "visit 2", "neighbours"),
        ("bfs-on-graph", 3, "see 2", "scan"),
        ("a-star", 6, "expand 5", "settled"),
        ("a-star", 2, "expand 1", "neighbours"),
        ("a-star", 2, "open 1 1", "lowers"),
        ("a-star", 3, "open 1 1", "scan"),
        ("a-star", 3, "expand 5", "ties"),
        ("dfs-on-tree", 0, "discover 3", "root"),
        ("dfs-on-tree", 6, "discover 4", "children-ascend"),
    ]);
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "dfs-on-tree",
            input: r#"{"n":2,"edges":[[0,1]]}"#,
            lines: &["discover 1", "discover 0", "finish 0", "finish 1", "done"],
            at: 0,
            constraint: "root",
        },
        Fooling {
            task: "dfs-on-tree",
            input: r#"{"n":2,"edges":[[0,1]]}"#,
            lines: &["discover 0", "finish 0", "discover 1", "finish 1", "done"],
            at: 2,
            constraint: "root",
        },
        Fooling {
            task: "dfs-on-tree",
            input: r#"{"n":3,"edges":[[0,1],[0,2]]}"#,
            lines: &[
                "discover 0",
                "discover 2",
                "finish 2",
                "discover 1",
                "finish 1",
                "finish 0",
                "done",
            ],
            at: 3,
            constraint: "children-ascend",
        },
        Fooling {
            task: "a-star",
            input: r#"{"n":5,"grid":[".....",".....",".....",".....","....."],"start":5,"goal":3}"#,
            lines: &[
                "expand 5",
                "open 0 1",
                "open 6 1",
                "open 10 1",
                "expand 6",
                "open 1 2",
                "open 7 2",
                "open 11 2",
                "expand 1",
                "open 2 3",
                "expand 2",
                "open 3 4",
                "expand 3",
                "done",
            ],
            at: 4,
            constraint: "ties",
        },
    ]);
}
