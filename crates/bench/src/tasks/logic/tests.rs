//! Lines that the constraints of this category find wrong.

use serde_json::{Value, json};

use crate::tasks::wrong_lines::assert_broken;
use crate::tasks::{Kinds, find};

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("sat-dpll", 0, "unsat", "conflicts-first"),
        ("sat-dpll", 0, "pure 1", "pure-literal"),
        ("sat-dpll", 1, "pure -2", "units-first"),
        ("sat-dpll", 1, "decide 2", "open-decision"),
        ("resolution-proof", 0, "res 0 1 1", "waiting-order"),
        ("resolution-proof", 4, "res 1 2 -2 3", "given-once"),
        ("type-inference", 3, "Int", "shape"),
        ("type-inference", 5, "Int -> t3", "shape"),
        ("type-inference", 5, "t2 -> t2", "shape"),
        ("unification", 0, "delete", "equal-sides"),
        ("unification", 1, "bind X2 = g(X1)", "subterm"),
        ("dependency-sat", 0, "choose 0 3", "first-allowed"),
        ("dependency-sat", 1, "fail", "complete"),
        ("dependency-sat", 2, "fail", "dead-end"),
        ("dependency-sat", 3, "install 3", "choices-first"),
        ("dependency-sat", 4, "back 1 4", "dead-end"),
    ]);
}

/// The constraints that the last line breaks. The lines before it are carried out, wrong or not.
fn broken_by_last(slug: &str, input: &Value, lines: &[&str]) -> Vec<&'static str> {
    let mut machine = find(slug).expect("listed").read_input(input).expect("valid").start();
    let mut broken = Vec::new();
    for line in lines {
        machine.propose(line).unwrap_or_else(|refusal| panic!("{slug}: {line}: {refusal}"));
        broken = machine.violations(Kinds::ALL).iter(machine.spec()).map(|c| c.name).collect();
        machine.commit();
    }
    broken
}

#[test]
fn lines_of_one_rule_keep_their_order() {
    let units = json!({ "variables": 2, "clauses": [[1], [2]] });
    assert_eq!(broken_by_last("sat-dpll", &units, &["unit 1 0", "unit 2 1"]), [""; 0]);
    assert!(broken_by_last("sat-dpll", &units, &["unit 2 1", "unit 1 0"]).contains(&"unit-order"));
    // The first unit makes the lower clause a unit.
    let chain = json!({ "variables": 2, "clauses": [[1, -2], [2]] });
    assert_eq!(broken_by_last("sat-dpll", &chain, &["unit 2 1", "unit 1 0"]), [""; 0]);

    let pure = json!({ "variables": 4, "clauses": [[1, 2], [3, 4]] });
    assert_eq!(broken_by_last("sat-dpll", &pure, &["pure 1", "pure 3"]), [""; 0]);
    assert!(broken_by_last("sat-dpll", &pure, &["pure 3", "pure 1"]).contains(&"pure-order"));
    // The first pure literal satisfies the clause in which the lower variable had the other sign.
    let freed = json!({ "variables": 3, "clauses": [[-1, 2], [1, 3], [1, -3]] });
    assert_eq!(broken_by_last("sat-dpll", &freed, &["pure 2", "pure 1"]), [""; 0]);

    let signs = json!({ "variables": 3, "clauses": [[1, 2, 3], [-1, -2, -3]] });
    assert!(
        broken_by_last("sat-dpll", &signs, &["decide 2", "decide 1"]).contains(&"decision-order")
    );
}

#[test]
fn choices_and_installations_keep_their_order() {
    let choices = json!({ "packages": 4, "install": [0, 1], "depends": [[0, [2]], [1, [3]]], "conflicts": [] });
    let right = ["choose 0 2", "choose 1 3", "install 2", "install 0", "install 3", "install 1"];
    for steps in 1..=right.len() {
        assert_eq!(broken_by_last("dependency-sat", &choices, &right[..steps]), [""; 0]);
    }
    let wrong = ["choose 1 3", "choose 0 2"];
    assert!(broken_by_last("dependency-sat", &choices, &wrong).contains(&"ascending-choices"));
    let wrong = ["choose 0 2", "choose 1 3", "install 3", "install 2"];
    assert!(broken_by_last("dependency-sat", &choices, &wrong).contains(&"install-order"));
}

#[test]
fn more_nodes_done_than_there_are_is_a_fault_of_done() {
    let problem =
        find("type-inference").expect("listed").generate(crate::tasks::Difficulty::Easy, 1);
    let mut machine = problem.start();
    while machine.follow_reference() {}
    let state = machine.state();

    let refusal = |field: &str, value: Value| {
        let mut state = state.clone();
        state[field] = value;
        problem.machine_at(&state).err().expect("refused").to_string()
    };
    let error = refusal("done", json!(100_000));
    assert!(error.contains("state field `done`: must be at most"), "{error}");

    // A let of no node.
    let error = refusal("lets", json!([["unheard", "Int"]]));
    assert!(error.contains("state field `lets`"), "{error}");
}
