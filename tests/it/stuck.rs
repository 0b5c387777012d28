//! Runs that cannot succeed end soon, by name, with the evidence.

use serde_json::{Value, json};

use crate::binary::{done, run};
use crate::daemon::Daemon;

/// A daemon whose executor proposes these lines over and over.
fn replaying(lines: &Value) -> Daemon {
    Daemon::start(&[
        "agents.executor.implementation=replay",
        &format!("agents.executor.lines={lines}"),
    ])
}

/// The arguments for an agent of this role that is a program with always the same answer, a Python
/// dictionary.
fn program(role: &str, answer: &str) -> [String; 6] {
    let program = format!(
        "import json, sys
print(json.dumps({{'prime': 1}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if 'id' in request: print(json.dumps({{'id': request['id'], **{answer}}}), flush=True)"
    );

    let command = format!("agents.{role}.program.command={}", json!(["python3", "-c", program]));
    let set = || "--set".to_owned();
    [
        set(),
        format!("agents.{role}.implementation=process"),
        set(),
        command,
        set(),
        "run.fanout=2".to_owned(),
    ]
}

fn stuck(daemon: &Daemon, request: &Value) -> Value {
    let record = daemon.finished(&daemon.submitted(request));
    assert_eq!(
        (&record["outcome"], &record["answer"]),
        (&json!("stuck"), &Value::Null),
        "{record}"
    );
    assert_ne!(record["status"], "verified", "{record}");
    record
}

#[test]
fn a_problem_whose_check_cannot_hold_ends_with_the_rejected_lines() {
    let daemon = replaying(&json!(["1", "2"]));
    let problem = json!({
        "statement": "Write a number that is greater than itself.",
        "steps": "single",
        "constraints": [
            {"name": "greater", "severity": "critical", "check": "int(answer) > int(answer)"},
        ],
    });

    let record = stuck(&daemon, &json!({"problem": problem, "fanout": 2}));
    let at = &record["stuck_at"];
    assert_eq!((&at["depth"], &at["trajectories"]), (&json!(0), &json!(2)), "{record}");

    let lines: Vec<&Value> =
        at["rejected"].as_array().unwrap().iter().map(|rejection| &rejection["line"]).collect();
    assert_eq!(lines, ["1", "2"]);
    assert!(at["rejected"][0]["reason"].as_str().unwrap().contains("greater"), "{at}");
    assert!(record["proposals"].as_u64().unwrap() < 50, "{record}");
}

#[test]
fn an_executor_that_writes_only_empty_lines_is_named() {
    let sets = program("executor", "{'action': ''}");
    let result = run(&[&["tower-of-hanoi"], &sets.each_ref().map(String::as_str)]).json(1);
    assert_eq!(
        (&result["outcome"], &result["stuck_at"]["rejected"][0]["line"]),
        (&json!("stuck"), &json!("")),
        "{result}"
    );
}

#[test]
fn a_run_stuck_in_its_middle_names_the_state() {
    // The first line is right, and the others never fit after it.
    let daemon = replaying(&json!(["move 1 0 2", "move 3 0 1", "move 3 2 1"]));
    let request =
        json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "fanout": 2});
    let record = stuck(&daemon, &request);
    assert_eq!(record["stuck_at"]["depth"], 1, "{record}");
    assert_eq!(record["stuck_at"]["state"]["pegs"], json!([[3, 2], [], [1]]), "{record}");
}

#[test]
fn the_text_of_a_stuck_run_shows_where_and_what_was_tried() {
    let sets = [
        "--set",
        "agents.executor.implementation=replay",
        "--set",
        r#"agents.executor.lines=["nonsense"]"#,
    ];
    let text = done(&[&["run", "bubble-sort"], &sets[..]].concat()).stdout;
    assert!(text.contains("ended  stuck"), "{text}");
    assert!(text.contains("4 trajectories at step 1, in the state {"), "{text}");
    assert!(text.contains("`nonsense`: format"), "{text}");
}

/// A verifier that rejects everything, before a model: every proposal is new, and the run ends in
/// good time.
#[cfg(feature = "llama")]
#[test]
fn a_verifier_that_rejects_everything_does_not_hold_a_model_for_long() {
    let sets =
        program("verifier", "{'score': 1.0, 'violations': ['everything'], 'feedback': 'no'}");
    let result = run(&[&["bubble-sort"], &sets.each_ref().map(String::as_str)]).json(1);
    assert_eq!(
        (&result["outcome"], &result["verified"]),
        (&json!("stuck"), &json!(false)),
        "{result}"
    );

    let rejected = result["stuck_at"]["rejected"].as_array().unwrap();
    let mut lines: Vec<&str> =
        rejected.iter().map(|rejection| rejection["line"].as_str().unwrap()).collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() == count && count >= 32, "{rejected:?}");

    // Each form of action was tried.
    for verb in ["cmp", "swap", "pass", "done"] {
        assert!(lines.iter().any(|line| line.starts_with(verb)), "{verb}: {lines:?}");
    }
    assert_eq!(result["stuck_at"]["rejected"][0]["reason"], "no");
}
