//! `runs reverify`.

use serde_json::{Value, json};

use super::runs;
use crate::binary::done;
use crate::daemon::{Daemon, Home, long_run};

/// Nobody checks, and two of five lines are wrong.
const UNCHECKED: [&str; 3] = [
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.4",
    "agents.verifier.implementation=none",
];

fn records(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("a record in JSON")).collect()
}

fn submitted(daemon: &Daemon, request: &Value) -> String {
    let location = daemon.submitted(request);
    daemon.finished(&location);
    location.rsplit('/').next().expect("an id").to_owned()
}

#[test]
fn a_run_that_nobody_checked_is_judged_again_by_rules() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &UNCHECKED);
    let wrong = submitted(
        &daemon,
        &json!({"task": "stack-simulator", "fanout": 1, "max_rounds": 1, "seed": 1}),
    );
    let right = submitted(
        &daemon,
        &json!({
            "task": "bubble-sort", "fanout": 1, "max_rounds": 1,
            "agents": {"executor": "reference", "verifier": "rules"},
        }),
    );

    let both = runs(
        &daemon,
        &["reverify", &wrong, &right, "run_unknown", "--verifier", "rules", "--output", "json"],
    );
    assert_eq!(both.code, 0, "{}", both.stderr);
    let lines = records(&both.stdout);
    let [first, second, unknown, summary] = &lines[..] else { panic!("{lines:?}") };

    assert_eq!((&first["run"], &first["task"]), (&json!(wrong), &json!("stack-simulator")));
    assert_eq!(first["verifier"], json!({"before": "none", "after": "rules"}));
    assert_eq!(first["assurance"]["before"], "unchecked", "{first}");
    assert!(first["decisions_changed"].as_u64() > Some(0), "{first}");
    assert_eq!((&first["answer_kept"], &first["answer"]["after"]), (&json!(false), &Value::Null));
    let change = &first["changes"][0];
    assert_eq!(change["seq"], first["first_change"]);
    assert_eq!(change["old"], json!({"score": 0.0, "violations": [], "decision": "proceed"}));
    assert_ne!(change["new"]["score"], json!(0.0), "{change}");

    // The same verifier says the same.
    assert_eq!((&second["verdicts_changed"], &second["changes"]), (&json!(0), &json!([])));
    assert_eq!(second["assurance"], json!({"before": "verified", "after": "verified"}));
    assert_eq!((&second["answer_kept"], &second["first_change"]), (&json!(true), &Value::Null));

    assert!(unknown["error"].as_str().is_some_and(|error| error.contains("run_unknown")));
    assert!(both.stderr.contains("run_unknown is left out"), "{}", both.stderr);
    let summary = &summary["summary"];
    assert_eq!((&summary["runs"], &summary["left_out"]), (&json!(2), &json!(1)));
    assert_eq!(
        (&summary["verified"]["both"], &summary["verified"]["neither"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(summary["answered"]["only_before"], 1);

    // The journal's file says the same as the daemon did.
    let home = daemon.kill();
    let journal = home.journal();
    let journal = journal.to_str().expect("UTF-8");
    let offline = done(&[
        "runs",
        "reverify",
        "--all",
        "--task",
        "stack-simulator",
        "--verifier",
        "rules",
        "--journal",
        journal,
        "--output",
        "json",
    ]);
    assert_eq!(offline.code, 0, "{}", offline.stderr);
    assert_eq!(records(&offline.stdout)[0], *first);

    // Without a check, the answer stands and nobody vouches for it.
    let by_none = done(&["runs", "reverify", &right, "--verifier", "none", "--journal", journal]);
    assert!(by_none.stdout.contains("verified → unchecked"), "{}", by_none.stdout);
    assert!(by_none.stdout.contains("no McNemar test"), "{}", by_none.stdout);
}

#[test]
fn what_cannot_be_judged_again_says_why_and_hides_nothing() {
    let daemon = Daemon::start(&[]);
    let open = daemon.submitted(&long_run());
    let open = open.rsplit('/').next().expect("an id").to_owned();
    let over = submitted(&daemon, &json!({"task": "bubble-sort", "fanout": 1}));

    let judged = runs(&daemon, &["reverify", &open, &over, "--verifier", "strict"]);
    assert_eq!(judged.code, 0, "{}", judged.stderr);
    assert!(judged.stderr.contains("it is not over"), "{}", judged.stderr);
    assert!(judged.stdout.contains("1 run judged again, 1 left out"), "{}", judged.stdout);

    for (arguments, part) in [
        (&["reverify", &over, "--verifier", "rulse"][..], "there is no such verifier; known:"),
        (&["reverify", &over, "--verifier", "rules", "--task", "n-queens"][..], "give --all"),
        (&["reverify", "--verifier", "rules"][..], "<RUN>"),
        (
            &["reverify", "--all", "--verifier", "rules", "--journal", "/nowhere.db"][..],
            "there is no such file",
        ),
    ] {
        let refused = runs(&daemon, arguments);
        assert_ne!(refused.code, 0, "{arguments:?}");
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
}

/// The verifier that judged finds what it found, however the run searched and voted.
#[test]
fn the_same_verifier_keeps_every_answer_whatever_the_strategy() {
    let daemon = Daemon::start(&UNCHECKED[..2]);
    let mut ids = Vec::new();
    for strategy in ["iterative", "greedy", "best_of_n", "ahead", "particle_filter", "uct"] {
        for (task, seed) in [("n-queens", 1), ("gnome-sort", 2), ("tower-of-hanoi", 3)] {
            ids.push(submitted(
                &daemon,
                &json!({"task": task, "strategy": strategy, "fanout": 4, "seed": seed}),
            ));
        }
    }

    let arguments: Vec<&str> = ["reverify", "--verifier", "rules", "--output", "json"]
        .into_iter()
        .chain(ids.iter().map(String::as_str))
        .collect();
    let again = runs(&daemon, &arguments);
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));

    let lines = records(&again.stdout);
    assert_eq!(lines.len(), ids.len() + 1);
    let mut judged = 0;
    for line in &lines[..ids.len()] {
        assert_eq!((&line["verdicts_changed"], &line["failed"]), (&json!(0), &json!(0)), "{line}");
        assert_eq!(line["assurance"]["before"], line["assurance"]["after"], "{line}");
        assert_eq!(line["answer"]["before"], line["answer"]["after"], "{line}");
        judged += line["steps"].as_u64().expect("a count");
    }
    assert!(judged > 100, "{judged} proposals");
}

/// A check that no answer breaks proves nothing the second time, either.
#[test]
fn a_tautology_is_not_verified_by_judging_again() {
    let recording = r#"agents.executor.lines=["42"]"#;
    let daemon = Daemon::start(&["agents.executor.implementation=replay", recording]);
    let judged_again = |check: &str| {
        let constraints = json!([{"name": "c", "severity": "minor", "check": check}]);
        let problem =
            json!({"statement": "What is it?", "steps": "single", "constraints": constraints});
        let run = submitted(&daemon, &json!({"problem": problem, "fanout": 1}));
        let again = runs(&daemon, &["reverify", &run, "--verifier", "rules", "--output", "json"]);
        records(&again.stdout)[0]["assurance"].clone()
    };

    let unrefuted = json!({"before": "unrefuted", "after": "unrefuted"});
    assert_eq!(judged_again("answer == answer"), unrefuted);
    let verified = json!({"before": "verified", "after": "verified"});
    assert_eq!(judged_again("answer == '42'"), verified);
}

#[test]
fn a_problem_without_a_check_and_a_damaged_record_are_named() {
    let home = Home::new();
    let recording = r#"agents.executor.lines=["42"]"#;
    let daemon = Daemon::start_in(&home, &["agents.executor.implementation=replay", recording]);
    let bare = submitted(
        &daemon,
        &json!({"problem": {"statement": "What is it?", "steps": "single"}, "fanout": 1}),
    );
    let damaged = submitted(
        &daemon,
        &json!({"task": "bubble-sort", "fanout": 1, "agents": {"executor": "reference"}}),
    );
    let whole = submitted(
        &daemon,
        &json!({"task": "bubble-sort", "fanout": 1, "agents": {"executor": "reference"}}),
    );

    let home = daemon.kill();
    rusqlite::Connection::open(home.journal())
        .expect("the journal")
        .execute(
            "UPDATE spec SET body = '{' WHERE run = (SELECT no FROM run WHERE id = ?1)",
            [&damaged],
        )
        .expect("a row");

    let journal = home.journal();
    let journal = journal.to_str().expect("UTF-8");
    let again = done(&[
        "runs",
        "reverify",
        &bare,
        &damaged,
        &whole,
        "--verifier",
        "rules",
        "--journal",
        journal,
    ]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    for part in [
        &format!("{bare} is left out: its problem has no check that `rules` evaluates"),
        &format!("{damaged} is left out: "),
    ] {
        assert!(again.stderr.contains(part.as_str()), "{part}: {}", again.stderr);
    }
    assert!(again.stdout.contains("1 run judged again, 2 left out"), "{}", again.stdout);
}
