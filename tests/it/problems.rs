//! Custom problems over HTTP: the same loop of proposal, verdict, retry, backtrack and vote.

use serde_json::{Value, json};

use crate::daemon::Daemon;

/// Finds the two factors of a number.
fn factors() -> Value {
    json!({
        "statement": "Write n as a product of two factors above 1.",
        "input": {"n": 35},
        "steps": "single",
        "answer": {"schema": {
            "type": "object", "required": ["x", "y"],
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}
        }},
        "constraints": [
            {"name": "product", "severity": "critical", "check": "answer.x * answer.y == input.n"},
            {"name": "proper", "severity": "major", "check": "answer.x > 1 && answer.y > 1"},
        ],
    })
}

/// A daemon whose executor proposes these lines.
fn replaying(lines: &Value) -> Daemon {
    let lines = format!("agents.executor.lines={lines}");
    Daemon::start(&["agents.executor.implementation=replay", &lines])
}

#[test]
fn wrong_answers_are_rejected_and_right_ones_verified() {
    let lines = json!([
        "I think it is 5 and 7",
        r#"{"x": 35, "y": 1}"#,
        r#"{"x": 5, "y": 8}"#,
        r#"{"x": 5, "y": 7}"#
    ]);
    let daemon = replaying(&lines);

    let run = daemon.submitted(&json!({"problem": factors(), "fanout": 3}));
    let record = daemon.finished(&run);

    assert_eq!(
        (&record["status"], &record["task"], &record["instance"]),
        (&json!("verified"), &json!("problem"), &json!("input"))
    );
    assert_eq!(record["answer"], json!({"x": 5, "y": 7}));
    let verification = json!({
        "assurance": "verified", "verifier": "rules", "methods": ["rules"],
        "kinds": ["format", "terminal"], "steps": 1,
    });
    assert_eq!(record["verification"], verification, "nothing was measured for this problem");
    assert_eq!((&record["outcome"], &record["votes"][0]["votes"]), (&json!("agreed"), &json!(2)));
    assert_eq!(record["notes"], json!(["executor `replay` replays given lines, not a model"]));

    let trace = daemon.text(&format!("{run}/trace"));
    let steps: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> = steps
        .iter()
        .filter(|line| line["event"] == "step" && line["trajectory"] == 0)
        .map(|step| (step["violations"].clone(), step["decision"].clone()))
        .collect();

    assert_eq!(
        found,
        [
            (json!(["format"]), json!("backtrack")),
            (json!(["proper"]), json!("backtrack")),
            (json!(["product"]), json!("backtrack")),
            (json!([]), json!("proceed")),
        ]
    );
}

#[test]
fn steps_are_checked_as_they_are_made() {
    let daemon = replaying(&json!(["2", "1", "4", "answer: 4"]));
    let problem = json!({
        "statement": "Write growing even numbers, then the last one as the answer.",
        "steps": "stepwise",
        "answer": {"pattern": "[0-9]+"},
        "constraints": [
            {
                "name": "even", "severity": "critical",
                "check": "state.steps.all(step, int(step) % 2 == 0)",
            },
            {
                "name": "last", "severity": "critical",
                "check": "answer == state.steps[size(state.steps) - 1]",
            },
        ],
    });

    let record = daemon.finished(&daemon.submitted(&json!({"problem": problem, "fanout": 1})));
    assert_eq!(
        (&record["status"], &record["answer"]),
        (&json!("verified"), &json!("4")),
        "{record}"
    );
    assert_eq!((&record["steps"], &record["backtracks"]), (&json!(3), &json!(1)));
}

#[test]
fn nothing_is_verified_without_a_check() {
    let daemon = replaying(&json!(["42"]));
    let why = "the problem has no constraint with a `check` of the answer or the steps, so that no \
               answer to it can be verified: add one that reads `answer`";

    // A check of the input alone holds for any answer.
    let of = |check| json!([{"name": "a", "severity": "minor", "check": check}]);
    for constraints in [json!([]), of("input.a == 2")] {
        let problem = json!({
            "statement": "What is it?",
            "input": {"a": 2},
            "steps": "single",
            "constraints": constraints,
        });
        let record = daemon.finished(&daemon.submitted(&json!({"problem": problem})));
        assert_ne!(record["status"], "verified", "{record}");
        assert_eq!(record["answer"], "42");
        assert_eq!(record["notes"][1], why);
    }

    // And so does a tautology.
    let problem = json!({
        "statement": "What is it?", "steps": "single", "constraints": of("answer == answer"),
    });
    let record = daemon.finished(&daemon.submitted(&json!({"problem": problem})));
    assert_eq!((&record["status"], &record["answer"]), (&json!("unrefuted"), &json!("42")));
}

#[test]
fn a_run_of_a_problem_survives_a_kill() {
    let endless = json!({
        "statement": "Count.",
        "steps": "stepwise",
        "constraints": [
            {"name": "short", "severity": "minor", "check": "size(state.steps) < 100000"},
        ],
    });
    let sets = ["agents.executor.implementation=replay", r#"agents.executor.lines=["one"]"#];
    let daemon = Daemon::start(&sets);

    // A round has ten thousand steps, and each is checked with all before it.
    let run = daemon.submitted(&json!({"problem": endless, "fanout": 1, "max_rounds": 1}));
    daemon.until(&run, |record| record["steps"].as_u64() >= Some(20));
    let daemon = Daemon::start_in(&daemon.kill(), &sets);
    let record = daemon.finished(&run);
    assert_eq!(
        (&record["outcome"], &record["task"]),
        (&json!("rounds_spent"), &json!("problem")),
        "{record}"
    );
}

#[test]
fn invalid_problems_say_why() {
    let daemon = replaying(&json!(["x"]));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut problem = factors();
        change(&mut problem);
        daemon.submit(&json!({"problem": problem}))
    };

    with(&|problem| problem["constraints"][1]["check"] = json!("answer.x >")).refused(
        400,
        Some("problem.constraints[1].check"),
        &[],
    );
    with(&|problem| {
        problem["constraints"][0] =
            json!({"name": "nice", "severity": "minor", "text": "It is nice."});
    })
    .refused(400, Some("problem.constraints"), &["\"nice\"", "`check`"]);
    with(&|problem| problem["statement"] = json!(" ")).refused(
        400,
        Some("problem.statement"),
        &["empty"],
    );
    with(&|problem| problem["stepz"] = json!(1)).refused(
        400,
        Some("problem.stepz"),
        &["unknown field"],
    );
    with(&|problem| problem["answer"] = json!({"pattern": "("})).refused(
        400,
        Some("problem.answer"),
        &[],
    );

    daemon.submit(&json!({"problem": factors(), "task": "n-queens"})).refused(
        400,
        Some("task"),
        &["problem"],
    );

    assert_eq!(daemon.get("/v1/runs").body["runs"], json!([]));
}
