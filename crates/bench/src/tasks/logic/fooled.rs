//! Traces that once ended in a wrong answer while no constraint but `next-step` was broken, traces
//! whose other right answer was called wrong, and what the goal tests refuse.

use serde_json::json;

use crate::tasks::find;
use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_right;

const PACKAGES: &str = r#"{"packages":6,"install":[0,1],"depends":[[0,[2,3]],[1,[4]],[2,[5]]],
    "conflicts":[[2,4],[4,5]]}"#;
/// All ways lead to package 3, which is in conflict with 0, or to 4, whose 5 is.
const NOT_INSTALLABLE: &str = r#"{"packages":6,"install":[0],
    "depends":[[0,[1,2]],[1,[4]],[2,[3,4]],[4,[5]]],
    "conflicts":[[0,3],[0,5]]}"#;
const IDENTITY: &str =
    r#"{"expression":"(let x1 (lam x2 x2) (lam x3 (app (app add 3) (app (app x1 x1) 4))))"}"#;
const TERMS: &str = r#"{"left":"f(X0,k(X1,X2))","right":"f(g(X1),k(a,X0))"}"#;
const REFUTABLE: &str = r#"{"variables":3,"clauses":[[1],[1,-2],[-1,-3],[-1,3],[1,2]]}"#;
const SATISFIABLE: &str = r#"{"variables":3,"clauses":[[1,3],[-2,-3],[1,2]]}"#;
const UNSATISFIABLE: &str = r#"{"variables":2,"clauses":[[1,2],[1,-2],[-1,2],[-1,-2]]}"#;

#[test]
fn traces_to_wrong_answers_break_an_invariant() {
    assert_found(&[
        Fooling::cut("dependency-sat", PACKAGES, &["fail"], "dead-end"),
        // Alternative 2 is skipped.
        Fooling::cut("dependency-sat", PACKAGES, &["choose 0 3"], "first-allowed"),
        // Package 4 is in conflict with 2: it has to be a dead end, not another dependency's turn.
        Fooling::cut(
            "dependency-sat",
            PACKAGES,
            &["choose 0 2", "choose 2 5", "choose 1 4"],
            "first-allowed",
        ),
        Fooling::cut("dependency-sat", PACKAGES, &["choose 0 2", "back 0 2", "fail"], "dead-end"),
        Fooling::cut(
            "dependency-sat",
            PACKAGES,
            &["choose 0 2", "back 0 2", "choose 1 4"],
            "first-allowed",
        ),
        Fooling::cut(
            "dependency-sat",
            PACKAGES,
            &["choose 0 2", "back 0 2", "choose 0 2"],
            "first-allowed",
        ),
        // The dependency of a package that is not selected, and one that is met.
        Fooling::cut("dependency-sat", PACKAGES, &["choose 2 5"], "first-allowed"),
        Fooling::cut(
            "dependency-sat",
            r#"{"packages":3,"install":[0,1],"depends":[[0,[1,2]]],"conflicts":[]}"#,
            &["choose 0 2"],
            "first-allowed",
        ),
        // The scheme of x1 with Int, or a variable that stands for something, is not principal.
        Fooling::cut(
            "type-inference",
            IDENTITY,
            &["t0", "t0 -> t0", "Int -> Int -> Int", "Int", "Int -> Int", "Int -> Int"],
            "shape",
        ),
        Fooling::cut(
            "type-inference",
            IDENTITY,
            &["t0", "t0 -> t0", "Int -> Int -> Int", "Int", "Int -> Int", "t1 -> t1"],
            "shape",
        ),
        Fooling::cut("unification", TERMS, &["delete"], "equal-sides"),
        Fooling::cut("unification", TERMS, &["decompose", "bind X2 = g(X1)"], "subterm"),
        Fooling::cut("unification", TERMS, &["decompose", "bind X0 = X1"], "subterm"),
    ]);
}

#[test]
fn other_right_answers_are_right() {
    assert_right(&[
        ("sat-dpll", SATISFIABLE, &["pure 1", "pure -3", "sat"]),
        ("resolution-proof", REFUTABLE, &["res 3 2 -1", "res 5 0 empty"]),
        (
            "unification",
            r#"{"left":"f(X0,k(X12,X2))","right":"f(g(X1),k(a,X1))"}"#,
            &["decompose", "bind X0 = g(X1)", "decompose", "bind X12 = a", "bind X1 = X2"],
        ),
        (
            "dependency-sat",
            PACKAGES,
            &[
                "choose 0 2",
                "back 0 2",
                "choose 0 3",
                "choose 1 4",
                "install 4",
                "install 1",
                "install 3",
                "install 0",
            ],
        ),
    ]);
}

/// A step of a refutation.
fn entry(id: usize, from: [usize; 2], clause: &[i64]) -> serde_json::Value {
    json!({ "id": id, "from": from, "clause": clause })
}

#[test]
fn goal_tests_refuse_answers_that_only_look_right() {
    let accepts = |slug: &str, input: &str, answer: serde_json::Value| {
        let input = serde_json::from_str(input).expect("JSON");
        find(slug).expect("listed").read_input(&input).expect("valid").accepts(&answer)
    };

    let sat = |input, satisfiable: bool, assignment: &[i64]| {
        accepts("sat-dpll", input, json!({ "satisfiable": satisfiable, "assignment": assignment }))
    };
    assert!(sat(SATISFIABLE, true, &[1, -3]));
    assert!(!sat(SATISFIABLE, true, &[1]));
    assert!(!sat(SATISFIABLE, true, &[1, -3, 4]));
    assert!(!sat(SATISFIABLE, false, &[]));
    assert!(sat(UNSATISFIABLE, false, &[]));
    // Its counts depend on how it was found; they are counts all the same.
    for (decisions, is_right) in [
        (json!(7), true),
        (json!(2.0), true),
        (json!(null), false),
        (json!(-1), false),
        (json!("5"), false),
        (json!(0.5), false),
    ] {
        let answer = json!({"satisfiable": true, "assignment": [1, -3], "decisions": decisions});
        assert_eq!(accepts("sat-dpll", SATISFIABLE, answer), is_right, "{decisions}");
    }
    assert!(!sat(UNSATISFIABLE, true, &[]));
    assert!(!sat(UNSATISFIABLE, false, &[1]));

    let refutes = |derived: usize, proof: &[serde_json::Value]| {
        accepts("resolution-proof", REFUTABLE, json!({ "derived": derived, "proof": proof }))
    };
    let (not_1, empty) = (entry(5, [3, 2], &[-1]), entry(6, [5, 0], &[]));
    assert!(refutes(2, &[not_1.clone(), empty.clone()]));
    assert!(refutes(5, &[not_1.clone(), entry(9, [0, 5], &[])]));
    // A count that is not the empty clause's, no proof, a missing and a later parent.
    assert!(!refutes(3, &[not_1.clone(), empty.clone()]));
    assert!(!refutes(0, &[]));
    assert!(!refutes(2, std::slice::from_ref(&empty)));
    assert!(!refutes(2, &[entry(5, [6, 0], &[]), entry(6, [3, 2], &[-1])]));
    // No resolvent, an end that is not empty, a clause that is not needed, an input's number.
    assert!(!refutes(2, &[entry(5, [4, 2], &[-1]), empty.clone()]));
    assert!(!refutes(1, std::slice::from_ref(&not_1)));
    assert!(!refutes(3, &[not_1.clone(), entry(6, [4, 1], &[1]), entry(7, [5, 0], &[])]));
    assert!(!refutes(1, &[entry(3, [3, 2], &[-1]), entry(5, [3, 0], &[])]));

    let unifies = |input, reason: &str, mgu: serde_json::Value| {
        let answer = json!({ "unifiable": reason == "ok", "reason": reason, "mgu": mgu });
        accepts("unification", input, answer)
    };
    let pair = r#"{"left":"f(X0,X1)","right":"f(X1,g(X2))"}"#;
    assert!(unifies(pair, "ok", json!({ "X0": "g(X2)", "X1": "g(X2)" })));
    // Not a unifier; not the most general one; not idempotent; a variable of its own; swapped
    // variables that do not fit together.
    assert!(!unifies(pair, "ok", json!({ "X0": "g(X2)", "X1": "X2" })));
    assert!(!unifies(pair, "ok", json!({ "X0": "g(a)", "X1": "g(a)", "X2": "a" })));
    assert!(!unifies(pair, "ok", json!({ "X0": "X1", "X1": "g(X2)" })));
    assert!(!unifies(pair, "ok", json!({ "X0": "g(X7)", "X1": "g(X7)", "X2": "X7" })));
    assert!(!unifies(pair, "clash", json!({})));
    let chain = r#"{"left":"f(X0,X1)","right":"f(X1,X2)"}"#;
    assert!(unifies(chain, "ok", json!({ "X0": "X1", "X2": "X1" })));
    assert!(!unifies(chain, "ok", json!({ "X0": "X1" })));
    let clash = r#"{"left":"f(a,X0)","right":"f(b,g(X0))"}"#;
    assert!(unifies(clash, "clash", json!({})));
    assert!(!unifies(clash, "occurs", json!({})));
    assert!(!unifies(clash, "clash", json!({ "X0": "a" })));

    let installs = |input, installable: bool, order: &[usize]| {
        let answer = json!({ "installable": installable, "order": order });
        accepts("dependency-sat", input, answer)
    };
    assert!(installs(PACKAGES, true, &[4, 1, 3, 0]));
    // Before its dependency; twice; a conflict; unmet; without what is asked for; unknown.
    assert!(!installs(PACKAGES, true, &[1, 4, 3, 0]));
    assert!(!installs(PACKAGES, true, &[4, 4, 1, 3, 0]));
    assert!(!installs(PACKAGES, true, &[5, 2, 4, 1, 0]));
    assert!(!installs(PACKAGES, true, &[4, 1, 0]));
    assert!(!installs(PACKAGES, true, &[3, 0]));
    assert!(!installs(PACKAGES, true, &[4, 1, 3, 0, 300]));
    assert!(!installs(PACKAGES, false, &[]));
    assert!(installs(NOT_INSTALLABLE, false, &[]));
    assert!(!installs(NOT_INSTALLABLE, false, &[0]));
}
