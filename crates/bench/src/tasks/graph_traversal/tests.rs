//! Lines that the constraints of this category find wrong.

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
    ]);
}
