//! Lines and traces that the constraints of this category find wrong.

use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("cellular-automaton", 0, "1", "rule-bit"),
        ("dfa-simulation", 0, "q2", "successor"),
        ("dfa-simulation", 2, "q0", "table-entry"),
        ("markov-chain", 0, "s0", "draw-below"),
        ("markov-chain", 0, "s0", "selected"),
        ("markov-chain", 0, "s2", "selected"),
        ("markov-chain", 1, "s2", "possible-draw"),
        ("nfa-simulation", 0, "close 0 3", "closure"),
        ("nfa-simulation", 1, "move -", "move-targets"),
        ("nfa-simulation", 1, "move 0 1", "move-targets"),
        ("nfa-simulation", 2, "close 1", "closure"),
        ("pda-execution", 2, "q1 -", "table-move"),
        ("petri-net", 0, "fire 2", "round-robin"),
        ("register-machine", 0, "- 5", "executed"),
        ("register-machine", 1, "r1=4 2", "executed"),
        ("register-machine", 2, "r1=4 5", "executed"),
        ("turing-machine", 0, "0 R 2", "table-entry"),
        ("turing-machine", 0, "0 R acc", "table-entry"),
    ]);
}

#[test]
fn traces_with_a_wrong_answer_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "turing-machine",
            input: "",
            lines: &["0 R acc"],
            at: 0,
            constraint: "table-entry",
        },
        Fooling {
            task: "register-machine",
            input: "",
            lines: &["- 5", "halt"],
            at: 0,
            constraint: "executed",
        },
        Fooling {
            task: "dfa-simulation",
            input: r#"{"states":3,"alphabet":"ab","delta":[[1,0],[1,2],[2,1]],"start":0,
                "accept":[2],"word":"abbaaba"}"#,
            lines: &["q1", "q2", "q1", "q2", "q1", "q1", "q1"],
            at: 3,
            constraint: "table-entry",
        },
        Fooling {
            task: "nfa-simulation",
            input: r#"{"states":4,"alphabet":"ab","delta":[[0,"a",1],[1,"b",2],[2,"a",1],[3,"b",0]],
                "epsilon":[[1,3],[2,0]],"start":0,"accept":[2],"word":"abb"}"#,
            lines: &[
                "close 0 2",
                "move 1",
                "close 1 3",
                "move 0 2",
                "close 0 2",
                "move -",
                "close -",
            ],
            at: 0,
            constraint: "closure",
        },
        Fooling {
            task: "nfa-simulation",
            input: "",
            lines: &[
                "close 0", "move -", "close -", "move -", "close -", "move -", "close -", "move -",
                "close -",
            ],
            at: 1,
            constraint: "move-targets",
        },
        Fooling {
            task: "pda-execution",
            input: r#"{"states":2,"alphabet":"ab","stack_alphabet":"ZAB","bottom":"Z",
                "delta":[[0,"","B",1,""],[0,"a","A",0,"AA"],[0,"a","Z",0,"AZ"],[0,"b","A",0,"BA"],
                [0,"b","Z",1,"BZ"],[1,"a","A",0,""],[1,"a","B",1,"A"],[1,"a","Z",1,"Z"],
                [1,"b","A",1,""],[1,"b","B",0,""],[1,"b","Z",0,"Z"]],
                "start":1,"accept":[0],"word":"bbba"}"#,
            lines: &["q0 Z", "q1 BZ", "q1 -", "q1 Z"],
            at: 2,
            constraint: "table-move",
        },
        Fooling {
            task: "markov-chain",
            input: r#"{"weights":[[500,300,200],[100,600,300],[250,250,500]],"start":2,
                "draws":[620,50,99,400,700]}"#,
            lines: &["s2", "s0", "s0", "s0", "s2"],
            at: 4,
            constraint: "selected",
        },
        Fooling {
            task: "petri-net",
            input: r#"{"marking":[1,0,3],"transitions":[{"in":[[0,1]],"out":[[1,1]]},
                {"in":[[0,1]],"out":[[1,1]]}],"firings":2}"#,
            lines: &["fire 1"],
            at: 0,
            constraint: "round-robin",
        },
        Fooling {
            task: "cellular-automaton",
            input: r#"{"rule":3,"boundary":"periodic","cells":"000","generations":1}"#,
            lines: &["0", "0", "0"],
            at: 0,
            constraint: "rule-bit",
        },
    ]);
}
