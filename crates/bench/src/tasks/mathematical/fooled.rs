//! Traces that once ended in a wrong answer while no constraint but `next-step` was broken, traces
//! whose other right answer was called wrong, and what the goal tests refuse.

use serde_json::json;

use crate::tasks::find;
use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_right;

const QUOTIENT: &str = r#"{"expression":"(/ (exp x) (cos x))"}"#;
const EQUATIONS: &str = r#"{"matrix":[[0,1,2],[3,-1,2],[-1,1,2]],"rhs":[8,2,-3]}"#;
const PROGRAM: &str = r#"{"c":[3,5],"a":[[1,0],[0,2],[3,2]],"b":[4,12,18]}"#;

#[test]
fn traces_to_wrong_answers_break_an_invariant() {
    assert_found(&[
        Fooling::cut("symbolic-diff", QUOTIENT, &["1", "(* (exp e0) d0)", "2"], "rule"),
        Fooling::cut(
            "symbolic-diff",
            QUOTIENT,
            &[
                "1",
                "(* (exp e0) d0)",
                "1",
                "(* (- 0 (sin e2)) d2)",
                "(/ (- (* d1 e3) (* e1 d3)) (^ 0 2))",
            ],
            "rule",
        ),
        // Row 2 has an entry in column 0, but row 1 comes first.
        Fooling::cut("gaussian-elimination", EQUATIONS, &["swap 0 2"], "pivot-row"),
        // No swap is due; the pivot is not the row's; the entry is cleared by another row.
        Fooling::cut("gaussian-elimination", EQUATIONS, &["swap 0 1", "swap 0 2"], "pivot-row"),
        Fooling::cut("gaussian-elimination", EQUATIONS, &["swap 0 1", "add 2 0 1"], "pivot-row"),
        Fooling::cut("gaussian-elimination", EQUATIONS, &["swap 0 1", "add 1 0 1"], "pivot-row"),
        Fooling::cut("gaussian-elimination", EQUATIONS, &["swap 0 1", "add 0 1 1"], "pivot-row"),
        Fooling::cut(
            "matrix-multiply",
            r#"{"a":[[-3,4],[3,2]],"b":[[4,1],[1,7]]}"#,
            &["acc 26", "acc 0", "acc 25", "acc 17", "acc 26", "acc 6", "acc 25", "acc 25"],
            "complete",
        ),
    ]);
}

#[test]
fn other_right_answers_are_right() {
    assert_right(&[
        // The column with the most negative entry, as Dantzig's rule takes it.
        (
            "simplex-method",
            PROGRAM,
            &[
                "pivot 1 1",
                "div 1 2",
                "sub 2 2",
                "sub 3 -5",
                "pivot 0 2",
                "div 2 3",
                "sub 0 1",
                "sub 3 -3",
            ],
        ),
        (
            "symbolic-diff",
            r#"{"expression":"(* (^ x 2) (sin (+ x 3)))"}"#,
            &[
                "1",
                "(* d0 (* (^ e0 1) 2))",
                "1",
                "0",
                "(+ d3 d2)",
                "(* (cos e4) d4)",
                "(+ (* d5 e1) (* e5 d1))",
            ],
        ),
    ]);
}

#[test]
fn goal_tests_refuse_answers_that_only_look_right() {
    let accepts = |slug: &str, input: &str, answer: &serde_json::Value| {
        let input = serde_json::from_str(input).expect("JSON");
        find(slug).expect("listed").read_input(&input).expect("valid").accepts(answer)
    };

    let right = json!({
        "value": "36", "solution": ["2", "6"], "basis": [2, 1, 0], "pivots": [[1, 1], [0, 2]],
    });
    let optimal = |answer| accepts("simplex-method", PROGRAM, &answer);
    let with = |field: &str, value| {
        let mut answer = right.clone();
        answer[field] = value;
        optimal(answer)
    };
    assert!(optimal(right.clone()));
    assert!(!with("value", json!("35")));
    assert!(!with("solution", json!(["2", "5"])));
    assert!(!with("basis", json!([2, 0, 1])));
    // Half of the way; a pivot that leaves the feasible region; one of an entry 0; no such column.
    assert!(!with("pivots", json!([[1, 1]])));
    assert!(!with("pivots", json!([[1, 2], [0, 1]])));
    assert!(!with("pivots", json!([[1, 0], [0, 2]])));
    assert!(!with("pivots", json!([[5, 1], [0, 2]])));
    let half = json!({
        "value": "30", "solution": ["0", "6"], "basis": [2, 1, 4], "pivots": [[1, 1]],
    });
    assert!(!optimal(half));

    let slope = |derivative: &str, nodes: usize| {
        let answer = json!({ "derivative": derivative, "nodes": nodes });
        accepts("symbolic-diff", r#"{"expression":"(* x (sin x))"}"#, &answer)
    };
    assert!(slope("(+ (sin x) (* x (cos x)))", 7));
    assert!(slope("(+ (* (cos x) x) (sin x))", 7));
    assert!(!slope("(+ (sin x) (* x (cos x)))", 8));
    assert!(!slope("(+ (sin x) (* x (sin x)))", 7));
    assert!(!slope("(- (sin x) (* x (cos x)))", 7));
    assert!(!slope("(+ (* 1 (sin x)) (* x (cos x)))", 9));
}
