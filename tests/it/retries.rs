//! Retries: a run that failed is tried again without what was rejected in it.

use serde_json::{Value, json};

use crate::binary::done;
use crate::daemon::{Daemon, long_run};

/// A daemon whose executor, a program, proposes the first of the numbers 1 to 4 that was not
/// rejected at its state, and gives up a state after two proposals.
fn counting() -> Daemon {
    counting_with(&[])
}

fn counting_with(more: &[&str]) -> Daemon {
    let program = "import json, sys
print(json.dumps({'prime': 1}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if 'id' in request:
        left = [n for n in '1234' if n not in request['excluded']]
        print(json.dumps({'id': request['id'], 'action': (left or ['1'])[0]}), flush=True)";
    let command = json!(["python3", "-c", program]);
    let command = format!("agents.executor.program.command={command}");
    let sets = [
        "agents.executor.implementation=process",
        &command,
        "run.attempts_max=2",
        "run.max_rounds=1",
    ];
    Daemon::start(&[&sets, more].concat())
}

/// A problem whose only answer is 3.
fn three() -> Value {
    json!({"fanout": 1, "labels": {"team": "red"}, "problem": {
        "statement": "Write a 3.",
        "steps": "single",
        "constraints": [{"name": "three", "severity": "critical", "check": "int(answer) == 3"}],
    }})
}

#[test]
fn a_retry_knows_what_was_rejected_and_a_plain_repetition_does_not() {
    let daemon = counting();
    let failed = daemon.finished(&daemon.submitted(&three()));
    let id = failed["id"].as_str().unwrap();
    assert_eq!((&failed["status"], &failed["proposals"]), (&json!("unverified"), &json!(2)));
    let path = format!("/v1/runs/{id}/retry");

    let plain = daemon.post_text(&path, r#"{"exclude": false, "seed": 5}"#);
    assert_eq!((plain.status, &plain.body["seed"]), (202, &json!(5)), "{plain:?}");
    let plain = daemon.finished(plain.location.as_deref().unwrap());
    assert_eq!((&plain["status"], &plain["retry_of"]), (&json!("unverified"), &json!(id)));

    let retry = done(&["runs", "retry", id, "--url", &daemon.url("")]);
    assert_eq!((retry.code, retry.stderr.as_str()), (0, ""));
    let retried = retry.stdout.trim_end();
    let solved = daemon.finished(&format!("/v1/runs/{retried}"));
    assert_eq!((&solved["status"], &solved["answer"]), (&json!("verified"), &json!("3")));
    assert_eq!(solved["proposals"], 1, "1 and 2 are not proposed again: {solved}");
    assert_eq!(solved["labels"], json!({"team": "red"}));
    assert_ne!(solved["seed"], failed["seed"]);
    let note = solved["notes"].as_array().unwrap().last().unwrap().to_string();
    assert!(note.contains(id) && note.contains("2 lines"), "{note}");

    // The origin leads to both.
    let is_linked = |record: &Value| {
        let retries = record["retried_as"].as_array();
        retries.is_some_and(|retries| retries.len() == 2 && retries[0] == *retried)
    };
    daemon.until(&format!("/v1/runs/{id}"), is_linked);

    // It is executed to the same end by another process, and its chain is its own.
    assert_eq!(done(&["runs", "verify-chain", retried, "--url", &daemon.url("")]).code, 0);
    // A retry of a failed retry knows what both had rejected.
    let further =
        daemon.post_text(&format!("/v1/runs/{}/retry", plain["id"].as_str().unwrap()), "");
    let further = daemon.finished(further.location.as_deref().unwrap());
    assert_eq!(further["status"], "verified", "{further}");
}

#[test]
fn only_what_is_over_and_not_verified_is_tried_again_and_once_for_each_key() {
    let daemon = counting();
    daemon.post("/v1/runs/run_0/retry").refused(404, None, &["run_0"]);
    let open = daemon.submitted(&json!({"problem": three()["problem"], "fanout": 1}));
    let failed = daemon.finished(&open);
    let path = format!("{open}/retry");
    daemon.post_text(&path, r#"{"seed": 9223372036854775808}"#).refused(
        400,
        Some("seed"),
        &["give 0"],
    );
    daemon.post_text(&path, r#"{"sead": 1}"#).refused(400, Some("sead"), &[]);

    let keyed = |key: &str, body: &str| -> crate::daemon::Answer {
        let post = daemon.client.post(daemon.url(&path)).header("Idempotency-Key", key);
        post.body(body.to_owned()).send().unwrap().into()
    };
    let (first, again) = (keyed("once", ""), keyed("once", ""));
    assert_eq!((first.status, again.status), (202, 200));
    assert_eq!(first.body["id"], again.body["id"]);
    keyed("once", r#"{"seed": 1}"#).refused(422, Some("Idempotency-Key"), &["another request"]);

    let solved = daemon.finished(first.location.as_deref().unwrap());
    let again = format!("/v1/runs/{}/retry", solved["id"].as_str().unwrap());
    daemon.post(&again).refused(409, None, &["is verified", "force"]);
    let forced = daemon.post_text(&again, r#"{"force": true}"#);
    assert_eq!((forced.status, &forced.body["retry_of"]), (202, &solved["id"]), "{forced:?}");
    assert_eq!(failed["retry_of"], Value::Null);
    drop(daemon);

    let daemon = Daemon::start(&[]);
    let open = daemon.submitted(&long_run());
    daemon.post(&format!("{open}/retry")).refused(409, None, &["is not over"]);
}

/// Two verifiers that disagree on every wrong line, so that each is flagged.
const DISPUTED: [&str; 3] = [
    "agents.verifier.implementation=ensemble",
    "agents.verifier.ensemble.members=[\"rules\", \"none\"]",
    "agents.verifier.ensemble.delta=0.0",
];

#[test]
fn a_line_that_a_person_accepts_may_be_proposed_again() {
    let daemon = counting_with(&DISPUTED);
    let run = daemon.submitted(&three());
    daemon.finished(&run);
    let flagged = daemon.get(&format!("{run}/reviews")).body;
    let steps = flagged["steps"].as_array().unwrap();
    let lines: Vec<_> = steps.iter().map(|step| step["action"].as_str().unwrap()).collect();
    assert_eq!(lines, ["1", "2"], "{flagged}");

    // What the plan of a retry leaves out.
    let left_out = || {
        let retry = daemon.post(&format!("{run}/retry"));
        assert_eq!(retry.status, 202, "{retry:?}");
        let path = retry.location.unwrap();
        daemon.finished(&path);
        let spec = daemon.get(&format!("{path}/spec")).body;
        let states = spec["plan"]["learnt"].as_array().cloned().unwrap_or_default();
        let lines = states.iter().flat_map(|state| state["rejected"].as_array().unwrap());
        lines.map(|line| line["line"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(left_out(), ["1", "2"]);

    let review = |verdict: &str| {
        let body = json!({"seq": steps[0]["seq"], "verdict": verdict}).to_string();
        assert_eq!(daemon.post_text(&format!("{run}/reviews"), &body).status, 200);
    };
    review("accept");
    assert_eq!(left_out(), ["2"]);
    // The newest review counts.
    review("reject");
    assert_eq!(left_out(), ["1", "2"]);
}

#[test]
fn a_retry_may_have_another_budget_within_the_daemons() {
    let daemon =
        Daemon::start(&["agents.executor.implementation=reference", "run.budget.steps=50"]);
    let request = json!({
        "task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "fanout": 1,
        "budget": {"steps": 2, "tokens": 9},
    });
    let failed = daemon.finished(&daemon.submitted(&request));
    assert_eq!(failed["outcome"], "steps_spent", "{failed}");
    let id = failed["id"].as_str().unwrap();
    let path = format!("/v1/runs/{id}/retry");

    for (budget, field) in [
        (json!({"steps": 51}), "budget.steps"),
        (json!({"steps": 0}), "budget.steps"),
        (json!({"cost": -1.0}), "budget.cost"),
        (json!({"tokens": 1_000_000_000_000_001_u64}), "budget.tokens"),
    ] {
        let body = json!({"budget": budget}).to_string();
        daemon.post_text(&path, &body).refused(400, Some(field), &[]);
    }

    let retry = ["runs", "retry", id, "--budget-steps", "50", "--url", &daemon.url("")];
    let retried = done(&retry).stdout;
    let solved = daemon.finished(&format!("/v1/runs/{}", retried.trim_end()));
    assert_eq!((&solved["status"], &solved["retry_of"]), (&json!("verified"), &json!(id)));
    // What is not named stays.
    let spec = daemon.get(&format!("/v1/runs/{}/spec", retried.trim_end())).body;
    let budget = &spec["plan"]["budget"];
    assert_eq!((&budget["steps"], &budget["tokens"]), (&json!(50), &json!(9)), "{spec}");
}
