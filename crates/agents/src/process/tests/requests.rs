//! Requests as programs see them.

use serde_json::{Value, json};

use super::super::request;
use super::{LIMITS, SAMPLING, trajectory};
use prime_protocol::{Decision, Score, Thresholds, Verdict};

fn read(line: &[u8]) -> Value {
    let (end, text) = line.split_last().expect("not empty");
    assert_eq!(*end, b'\n');
    assert!(!text.contains(&b'\n'), "one line");
    serde_json::from_slice(text).expect("JSON")
}

fn sorted(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

const COMMON: [&str; 14] = [
    "abandoned",
    "actions",
    "algorithm",
    "constraints",
    "depth",
    "excluded",
    "feedback",
    "id",
    "input",
    "rejections",
    "state",
    "task",
    "title",
    "view",
];

fn with<'k>(more: &[&'k str]) -> Vec<&'k str> {
    let mut keys: Vec<_> = COMMON.iter().copied().chain(more.iter().copied()).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn executor_requests_have_the_state() {
    let mut at = trajectory("tower-of-hanoi");
    for (line, decision) in [("move 1 0 2", Decision::Proceed), ("move 2 0 0", Decision::Backtrack)]
    {
        let applicable = at.machine.propose(line).is_ok();
        let feedback = Some("not so".to_owned());
        at.settle(line, applicable, &Verdict { feedback, ..Verdict::default() }, decision, &LIMITS);
    }

    let seen = read(&request::propose(5, &at, SAMPLING));
    assert_eq!(sorted(&seen), with(&["sampling"]));
    assert_eq!(
        (&seen["id"], &seen["task"], &seen["depth"]),
        (&json!(5), &json!("tower-of-hanoi"), &json!(1))
    );
    assert_eq!((&seen["feedback"], &seen["excluded"]), (&json!("not so"), &json!(["move 2 0 0"])));
    assert_eq!(seen["rejections"], json!([{"line": "move 2 0 0", "reason": "not so"}]));
    assert_eq!(seen["abandoned"], json!([]));
    assert_eq!(seen["state"]["last"], "move 1 0 2");
    assert_eq!(sorted(&seen["input"]), ["from", "n", "to"]);
    assert_eq!(seen["sampling"]["seed"], 7);
    assert_eq!(sorted(&seen["constraints"][0]), ["kind", "meaning", "name", "severity"]);
    assert_eq!(
        (&seen["constraints"][0]["name"], &seen["constraints"][1]["kind"]),
        (&json!("format"), &json!("invariant"))
    );
    assert_eq!(seen["constraints"].as_array().map(Vec::len), Some(9));
    assert!(seen["algorithm"].as_str().is_some_and(|text| text.len() > 20));
}

#[test]
fn hidden_fields_are_only_for_verifiers() {
    let mut at = trajectory("blind-maze");
    at.machine.propose("move N").ok();

    let executor = read(&request::propose(1, &at, SAMPLING));
    let verifier = read(&request::judge(2, &at, "move N"));

    let thresholds = Thresholds { soft: Score::ZERO, hard: Score::ZERO, retries_max: 0 };
    let coordinator = read(&request::decide(3, &at, "move N", &Verdict::default(), &thresholds));

    assert!(!verifier["input"]["passages"].is_null());
    for seen in [executor, coordinator] {
        assert!(
            seen["input"]["passages"].is_null() && !seen["input"]["goal"].is_null(),
            "{}",
            seen["input"]
        );
        assert!(!seen["state"].to_string().contains("passages"));
    }
}

#[test]
fn verifier_requests_have_the_steps_effect() {
    let mut at = trajectory("tower-of-hanoi");
    at.machine.propose("move 1 0 2").expect("legal");
    let seen = read(&request::judge(1, &at, "move 1 0 2"));
    assert_eq!(sorted(&seen), with(&["action", "after", "applicable", "ends", "refusal"]));
    assert_eq!(
        (&seen["action"], &seen["applicable"], &seen["ends"]),
        (&json!("move 1 0 2"), &json!(true), &json!(false))
    );
    assert_eq!(
        (&seen["state"]["last"], &seen["after"]["last"]),
        (&json!(""), &json!("move 1 0 2"))
    );

    at.machine.propose("move 3 0 2").expect_err("it is not on top");
    let seen = read(&request::judge(1, &at, "move 3 0 2"));
    assert_eq!((&seen["applicable"], &seen["after"]), (&json!(false), &Value::Null));
    assert_eq!(seen["refusal"], "cannot be applied here: that disk is not on top of that peg");
}

#[test]
fn coordinator_requests_have_verdict_and_thresholds() {
    let mut at = trajectory("bubble-sort");
    at.stack.top_mut().retries = 2;
    let score = |value| Score::from_value(value).expect("a score");
    let thresholds = Thresholds { soft: score(0.3), hard: score(0.8), retries_max: 4 };
    let verdict =
        Verdict { score: score(0.6), violations: vec!["tail".into()], ..Verdict::default() };

    let seen = read(&request::decide(1, &at, "cmp 0 1", &verdict, &thresholds));
    assert_eq!(
        sorted(&seen),
        with(&["action", "retries", "retries_max", "tau_hard", "tau_soft", "verdict"])
    );
    assert_eq!(seen["verdict"], json!({"score": 0.6, "violations": ["tail"], "feedback": null}));
    assert_eq!((&seen["retries"], &seen["retries_max"]), (&json!(2), &json!(4)));
    assert_eq!((&seen["tau_soft"], &seen["tau_hard"]), (&json!(0.3), &json!(0.8)));
}
