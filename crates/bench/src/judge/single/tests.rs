//! Judgements that were worked out by hand.

use serde_json::json;

use super::*;
use crate::judge::{Body, StageResult, judge_body};

fn request(fields: Value) -> VerifyRequest {
    serde_json::from_value(fields).expect("a request")
}

fn step(fields: Value) -> StepVerdict {
    match judge(&request(fields)) {
        Ok(Verification::Step(step)) => *step,
        other => panic!("{other:?}"),
    }
}

fn names(step: &StepVerdict) -> Vec<&str> {
    step.violations.iter().map(|violation| violation.name.as_str()).collect()
}

#[test]
fn the_first_line_is_judged_in_the_start_state() {
    let judged =
        step(json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] }, "action": "cmp 0 1" }));
    let state = json!({
        "a": [3, 1, 2], "swapped": false, "comparisons": 1, "swaps": 0, "passes": 0, "last": "cmp 0 1",
    });
    let expected = StepVerdict {
        applicable: true,
        refusal: None,
        score: 0.0,
        violations: Vec::new(),
        state: Some(state),
        ended: false,
        answer: None,
    };
    assert_eq!(judged, expected);
}

#[test]
fn lines_and_the_state_after_them_lead_to_the_same_judgement() {
    let state = json!({
        "a": [1, 3, 2], "swapped": true, "comparisons": 1, "swaps": 1, "passes": 0, "last": "swap 0 1",
    });
    for action in ["cmp 1 2", "swap 0 2", "pass", "done", "nonsense", "cmp 1 3"] {
        let base = json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] }, "action": action });
        let mut by_lines = base.clone();
        by_lines["actions"] = json!(["cmp 0 1", "swap 0 1"]);
        let mut by_state = base;
        by_state["state"] = state.clone();

        assert_eq!(step(by_lines), step(by_state), "{action}");
    }
}

#[test]
fn what_a_step_breaks_is_named_and_weighed() {
    let cases = [
        // Two cells that are not neighbours, and were not compared. The exchange takes one
        // inversion away, as it claims.
        (
            json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] }, "actions": ["cmp 0 1"], "action": "swap 0 2" }),
            vec!["adjacent", "compared"],
        ),
        // 48 - 2·18 is 12.
        (
            json!({ "task": "gcd-euclidean", "input": { "a": 48, "b": 18 }, "action": "2 12" }),
            vec![],
        ),
        (
            json!({ "task": "gcd-euclidean", "input": { "a": 48, "b": 18 }, "action": "2 11" }),
            vec!["bezout"],
        ),
        // A larger disk on a smaller one.
        (
            json!({
                "task": "tower-of-hanoi", "input": { "n": 2, "from": 0, "to": 2 },
                "actions": ["move 1 0 1"], "action": "move 2 0 1",
            }),
            vec!["stacking"],
        ),
    ];
    for (fields, wanted) in cases {
        let judged = step(fields.clone());
        assert!(judged.applicable, "{fields}");
        assert_eq!(names(&judged), wanted, "{fields}");

        let weights =
            judged.violations.iter().map(|violation| violation.severity.weight()).sum::<f64>();
        assert!((judged.score - weights).abs() < 1e-9, "{fields}");
        assert!(judged.violations.iter().all(|violation| !violation.meaning.is_empty()));
    }
}

#[test]
fn a_state_that_no_line_leads_to_is_judged_too() {
    // More swaps than comparisons: the step is the algorithm's, and the counts stay wrong.
    let state = json!({ "a": [1, 2], "swapped": false, "comparisons": 0, "swaps": 7, "passes": 0, "last": "cmp 0 1" });
    let fields = json!({ "task": "bubble-sort", "input": { "a": [2, 1] }, "state": state, "action": "done" });
    let judged = step(fields);

    assert_eq!(names(&judged), ["inversions", "counts", "comparisons"]);
    assert!(judged.ended);
    assert_eq!(
        judged.answer,
        Some(json!({ "sorted": [1, 2], "comparisons": 0, "swaps": 7, "passes": 1 }))
    );
}

#[test]
fn a_trace_that_ends_has_an_answer() {
    let fields = json!({ "task": "tower-of-hanoi", "input": { "n": 1, "from": 0, "to": 2 }, "action": "move 1 0 2" });
    let judged = step(fields);
    assert_eq!((judged.ended, judged.score), (true, 0.0));
    let answer = json!({ "moves": 1, "disk_moves": [1], "pair_moves": [0, 1, 0, 0, 0, 0], "pegs": [[], [], [1]] });
    assert_eq!(judged.answer, Some(answer));
}

#[test]
fn a_refused_line_breaks_the_format_and_leaves_no_state() {
    for (action, kind) in [
        ("compare 0 1", RefusalKind::Unparsable),
        ("", RefusalKind::Unparsable),
        ("cmp 0 9", RefusalKind::Illegal),
    ] {
        let judged =
            step(json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] }, "action": action }));

        assert_eq!(judged.refusal.as_ref().map(|refusal| refusal.kind), Some(kind), "{action:?}");
        assert!(judged.refusal.is_some_and(|refusal| !refusal.reason.is_empty()));
        assert_eq!(
            (judged.applicable, judged.state, judged.ended, judged.answer),
            (false, None, false, None)
        );
        assert_eq!(
            judged.violations.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
            ["format"]
        );
    }
}

#[test]
fn kinds_decide_what_is_looked_at() {
    let judged = |kinds: Value| {
        let input = json!({ "a": [3, 1, 2] });
        let fields =
            json!({ "task": "bubble-sort", "input": input, "action": "cmp 1 2", "kinds": kinds });
        names(&step(fields)).len()
    };

    // The algorithm begins with cmp 0 1, as does every scan; but for that, nothing is wrong with
    // the line.
    assert_eq!(judged(json!(["format", "terminal"])), 0);
    assert_eq!(judged(json!(["invariant"])), 1);
    assert_eq!(judged(json!(["transition"])), 1);
    assert_eq!(judged(Value::Null), 1);
}

#[test]
fn answers_are_judged_by_goal_or_reference() {
    let sort = json!({ "task": "bubble-sort", "input": { "a": [2, 1] } });
    let right = json!({ "sorted": [1, 2], "comparisons": 1, "swaps": 1, "passes": 1 });
    let wrong = json!({ "sorted": [1, 2], "comparisons": 2, "swaps": 1, "passes": 1 });
    let game = json!({ "task": "24-game", "input": { "numbers": [6, 4], "target": 24 } });
    let cases = [
        (&sort, right, true, AnswerTest::Reference),
        (&sort, wrong, false, AnswerTest::Reference),
        (&sort, json!("sorted"), false, AnswerTest::Reference),
        (&game, json!({ "expression": "6*4" }), true, AnswerTest::Goal),
        (&game, json!({ "expression": "(4*6)" }), true, AnswerTest::Goal),
        (&game, json!({ "expression": "6+4" }), false, AnswerTest::Goal),
    ];

    for (fields, answer, right, judged_by) in cases {
        let mut fields = fields.clone();
        fields["answer"] = answer;
        let wanted = Verification::Answer(AnswerVerdict { right, judged_by });
        assert_eq!(judge(&request(fields.clone())), Ok(wanted), "{fields}");
    }
}

#[test]
fn an_instance_of_the_benchmark_is_named_by_level_and_index() {
    let fields =
        json!({ "task": "bubble-sort", "difficulty": "easy", "index": 0, "action": "cmp 0 1" });
    let judged = step(fields);
    assert!(judged.applicable && judged.violations.is_empty());
}

#[test]
fn a_request_that_cannot_be_judged_is_refused_with_the_field() {
    let base = json!({ "task": "bubble-sort", "input": { "a": [2, 1] }, "action": "cmp 0 1" });
    let with = |changes: Value| {
        let mut fields = base.clone();
        for (field, value) in changes.as_object().expect("an object") {
            fields[field] = value.clone();
        }
        fields
    };

    let long: Vec<&str> = vec!["cmp 0 1"; ACTIONS_MAX + 1];
    let hanoi = json!({ "n": 32, "from": 0, "to": 1 });
    let cases = [
        (with(json!({ "task": "bubble" })), "task", "bubble-sort"),
        (with(json!({ "input": null })), "difficulty", "missing"),
        (with(json!({ "input": null, "difficulty": "easy" })), "index", "missing"),
        (with(json!({ "input": null, "difficulty": "easy", "index": 1000 })), "index", "999"),
        (with(json!({ "index": 1 })), "index", "beside `input`"),
        (with(json!({ "input": { "a": 1 } })), "input", "`a`"),
        (with(json!({ "state": { "a": [2, 1] } })), "state", "swapped"),
        (with(json!({ "state": {}, "actions": [] })), "actions", "not both"),
        (with(json!({ "actions": ["cmp 0 1", "cmp 0 7"] })), "actions[1]", "cmp 0 7"),
        (with(json!({ "actions": ["done", "cmp 0 1"] })), "actions[1]", "ended"),
        (with(json!({ "actions": long })), "actions", "100001"),
        (with(json!({ "action": null })), "action", "nothing to judge"),
        (with(json!({ "answer": {} })), "answer", "not both"),
        (
            with(json!({ "action": null, "answer": {}, "actions": [] })),
            "actions",
            "goes with `action`",
        ),
        (with(json!({ "kinds": [] })), "kinds", "at least one"),
        (json!({ "task": "tower-of-hanoi", "input": hanoi, "answer": {} }), "input", "steps"),
    ];
    for (fields, field, part) in cases {
        let error = judge(&request(fields)).expect_err("refused");
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn wrong_values_in_a_state_are_named() {
    let state = |changes: Value| {
        let mut state = json!({
            "a": [1, 3, 2], "swapped": true, "comparisons": 1, "swaps": 1, "passes": 0, "last": "swap 0 1",
        });
        for (field, value) in changes.as_object().expect("an object") {
            state[field] = value.clone();
        }
        json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] }, "state": state, "action": "cmp 1 2" })
    };
    for (changes, part) in [
        (json!({ "a": [1, 2] }), "`a`"),
        (json!({ "a": [1, 2, "3"] }), "`a[2]`"),
        (json!({ "last": "swap 0 5" }), "`last`"),
        (json!({ "last": "jump" }), "`last`"),
        (json!({ "passes": -1 }), "`passes`"),
        (json!({ "passes": u64::MAX }), "`passes`"),
        (json!({ "other": 1 }), "`other`"),
    ] {
        let error = judge(&request(state(changes))).expect_err("refused");
        assert_eq!(error.field.as_deref(), Some("state"));
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn lines_are_read_as_in_outputs_and_numbers_are_compared_by_value() {
    let base = json!({ "task": "bubble-sort", "input": { "a": [3, 1, 2] } });
    let with = |fields: Value| {
        let mut request = base.clone();
        for (name, value) in fields.as_object().expect("fields") {
            request[name] = value.clone();
        }
        request
    };

    let clean = step(with(json!({ "actions": ["cmp 0 1"], "action": "swap 0 1" })));
    assert!(clean.applicable);
    for action in
        ["swap 0 1 ", "swap 0 1\r\n", "**swap 0 1**", "2. `swap 0 1`.", "\u{feff}swap 0 1\0"]
    {
        let spelt = with(json!({ "actions": ["1. cmp 0 1 "], "action": action }));
        assert_eq!(step(spelt), clean, "{action:?}");
    }

    let right = |answer: Value| match judge(&request(with(json!({ "answer": answer })))) {
        Ok(Verification::Answer(verdict)) => verdict.right,
        other => panic!("{other:?}"),
    };
    assert!(right(json!({ "sorted": [1.0, 2, 3.0], "comparisons": 3.0, "swaps": 2, "passes": 2 })));
    assert!(!right(json!({ "sorted": [1, 2, 3], "comparisons": "3", "swaps": 2, "passes": 2 })));

    // Goal tests read numbers the same.
    let queens = json!({
        "task": "n-queens", "input": { "n": 4, "order": [0, 1, 2, 3] },
        "answer": { "queens": [1.0, 3, 0, 2.0] },
    });
    let wanted = AnswerVerdict { right: true, judged_by: AnswerTest::Goal };
    assert_eq!(judge(&request(queens)), Ok(Verification::Answer(wanted)));
}

#[test]
fn no_judge_takes_an_answer_with_a_field_that_the_contract_does_not_list() {
    for task in tasks::all() {
        let spec = task.spec();
        let input: Value = serde_json::from_str(spec.page.example.input).expect("JSON");
        let answer: Value = serde_json::from_str(spec.page.example.answer).expect("JSON");
        let mut more = answer.clone();
        more.as_object_mut().expect("an object").insert("unlisted".to_owned(), json!(0));
        let problem = task.read_input(&input).expect("an example is valid");

        for (answer, is_right) in [(answer, true), (more, false)] {
            let slug = spec.slug;
            assert_eq!(problem.accepts(&answer), is_right, "{slug}: {answer}");

            let asked = request(json!({ "task": slug, "input": input, "answer": answer }));
            let Ok(Verification::Answer(verdict)) = judge(&asked) else { panic!("{slug}") };
            assert_eq!(verdict.right, is_right, "{slug}: {answer}");

            let body = Body::Structured { actions: None, answer: Some(answer) };
            let level = Difficulty::Easy;
            let judged = judge_body(problem.as_ref(), "x".to_owned(), level, &body, Kinds::ALL);
            assert_eq!(judged.result == StageResult::Passed, is_right, "{slug}");
        }
    }
}
