//! Lines and traces that the constraints of this category find wrong.

use serde_json::json;

use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_broken;
use crate::tasks::{Kinds, find};

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("ascii-art-parse", 0, "new hline 0 0", "kind"),
        ("ascii-art-parse", 1, "right 4 6", "edge"),
        ("ascii-art-parse", 8, "right 2 3", "edge"),
        ("regex-nfa", 0, "lit b 0 1", "next-node"),
        ("regex-nfa", 1, "set 0", "next-node"),
        ("regex-nfa", 6, "star 10 11", "next-node"),
        ("regex-nfa", 6, "set 9", "active-set"),
        ("regex-nfa", 8, "set 3", "active-set"),
    ]);
}

/// To other engines `a+?` is a lazy `a+`; here, as the grammar says, it is `(a+)?`.
#[test]
fn several_quantifiers_in_a_row_apply_one_after_the_other() {
    for (regex, text, matched) in [
        ("a+?b", "b", true),
        ("a+?", "", true),
        ("(ab+?)c", "ac", true),
        ("a+?+b", "b", true),
        ("a++b", "b", false),
        ("a?*?c", "aaac", true),
        ("a??b", "aab", false),
    ] {
        let input = json!({ "regex": regex, "text": text });
        let mut machine = find("regex-nfa").unwrap().read_input(&input).unwrap().start();
        while let Some(line) = machine.reference() {
            machine.propose(&line).unwrap();
            assert!(machine.violations(Kinds::ALL).is_empty(), "{regex} on {text:?}: {line}");
            machine.commit();
        }
        assert_eq!(machine.answer().unwrap()["matched"], json!(matched), "{regex} on {text:?}");
    }
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "regex-nfa",
            input: r#"{"regex":"(a|bc)*","text":"bca"}"#,
            lines: &["lit a 0 1", "set -", "set 0", "set -", "set 1"],
            at: 1,
            constraint: "next-node",
        },
        Fooling {
            task: "regex-nfa",
            input: "",
            lines: &[
                "lit a 0 1",
                "lit b 2 3",
                "lit c 4 5",
                "cat 2 5",
                "alt 6 7",
                "star 8 9",
                "set 0 2 6 8 9",
                "set 0 1 2 6 7 9",
                "set 3 4",
                "set 0 2 5 6 7 9",
                "set 0 1 2 5 6 7 9",
            ],
            at: 10,
            constraint: "active-set",
        },
        Fooling {
            task: "ascii-art-parse",
            input: "",
            lines: &[
                "new rect 0 0",
                "right 0 6",
                "down 4 6",
                "left 4 0",
                "up 0 0",
                "new vline 0 9",
                "down 2 9",
                "new hline 2 2",
                "right 2 4",
                "new hline 6 0",
                "right 6 0",
                "new hline 6 1",
                "right 6 2",
            ],
            at: 10,
            constraint: "edge",
        },
        Fooling {
            task: "ascii-art-parse",
            input: r#"{"grid":["-"]}"#,
            lines: &["new vline 0 0", "down 0 0"],
            at: 0,
            constraint: "kind",
        },
    ]);
}
