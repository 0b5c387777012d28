//! Commands that ask once: submit, list, show, trace, cancel, fork, gc.

use serde_json::{Value, json};

use super::{SCRIPTED, json_lines, long, runs, submitted};
use crate::binary::{file, shown};
use crate::daemon::Daemon;

#[test]
fn a_run_is_handed_in_waited_for_and_shown() {
    let daemon = Daemon::start(&["server.allow_executors=[\"reference\", \"scripted\"]"]);
    let id = submitted(
        &daemon,
        &["n-queens", "--difficulty", "medium", "--index", "3", "--fanout", "2", "--seed", "9"],
    );

    let record = daemon.finished(&format!("/v1/runs/{id}"));
    assert_eq!((&record["instance"], &record["seed"]), (&json!("n-queens/medium/003"), &json!(9)));
    assert_eq!(runs(&daemon, &["show", &id, "--output", "json"]).json(0), record);

    let text = runs(&daemon, &["show", &id]);
    assert_eq!(text.code, 0);
    for part in
        [&id, "verified", "n-queens/medium/003", record["chain"].as_str().unwrap(), "not a model"]
    {
        assert!(text.stdout.contains(part), "{part:?} is missing in {}", text.stdout);
    }

    let (_folder, path) = file("input.json", r#"{"a": [2, 1]}"#);
    let arguments =
        ["submit", "bubble-sort", "--input", shown(&path), "--wait", "--output", "json"];
    let waited = runs(&daemon, &arguments);
    assert!(
        waited.stderr.starts_with("run_") && waited.stderr.contains("is accepted"),
        "{}",
        waited.stderr
    );
    let record = waited.json(0);
    assert_eq!(
        (&record["answer"]["sorted"], &record["status"]),
        (&json!([1, 2]), &json!("verified"))
    );

    let spent = runs(
        &daemon,
        &["submit", "bubble-sort", "--budget-steps", "1", "--executor", "scripted", "--wait"],
    );
    assert_eq!(spent.code, 1, "{}", spent.stderr);
    assert!(
        spent.stdout.contains("steps_spent") && spent.stdout.contains("scripted"),
        "{}",
        spent.stdout
    );
}

#[test]
fn a_problem_of_ones_own_is_handed_in() {
    let daemon = Daemon::start(&[]);
    let (_folder, path) = file("problem.json", "{}");
    // What a problem must have is the daemon's to say.
    runs(&daemon, &["submit", "--problem", shown(&path)]).failed(&["problem", "status 4"]);
    runs(&daemon, &["submit", "n-queens", "--problem", shown(&path)]).refused(&["--problem"]);
    runs(&daemon, &["submit", "--problem", shown(&path), "--index", "1"])
        .refused(&["--problem", "--index"]);
}

#[test]
fn the_same_idempotency_key_is_the_same_run() {
    let daemon = Daemon::start(&[]);
    let first = submitted(&daemon, &["n-queens", "--key", "once"]);
    let again = runs(&daemon, &["submit", "n-queens", "--key", "once"]);
    assert_eq!((again.code, again.stdout.trim_end()), (0, first.as_str()));
    assert!(again.stderr.contains("used before"), "{}", again.stderr);

    runs(&daemon, &["submit", "bubble-sort", "--key", "once"])
        .failed(&["another request", "status 422"]);
    for key in ["", "a b", "é", &"x".repeat(256)] {
        runs(&daemon, &["submit", "n-queens", "--key", key]).refused(&["--key", "1 to 255"]);
    }

    let secret = format!("prime_{}", "0".repeat(64));
    let mixed_up = runs(&daemon, &["submit", "n-queens", "--key", &secret]);
    mixed_up.refused(&["PRIME_API_KEY"]);
    assert!(!mixed_up.stderr.contains(&secret), "the key is not repeated");
}

#[test]
fn runs_are_listed_page_by_page_and_removed() {
    let daemon = Daemon::start(&[]);
    let ids: Vec<_> = (0..5)
        .map(|index| submitted(&daemon, &["dfa-simulation", "--index", &index.to_string()]))
        .collect();
    for id in &ids {
        daemon.finished(&format!("/v1/runs/{id}"));
    }

    let open = long(&daemon);
    let list = |arguments: &[&str]| {
        runs(&daemon, &[&["list", "--output", "json"], arguments].concat()).json(0)
    };
    let ids_of = |list: &Value| -> Vec<String> {
        list["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();

    let page = list(&["--task", "dfa-simulation", "--limit", "2"]);
    assert_eq!(
        (ids_of(&page), &page["next"]),
        (newest_first[..2].to_vec(), &json!(newest_first[1]))
    );
    let page = list(&["--task", "dfa-simulation", "--limit", "2", "--after", &newest_first[1]]);
    assert_eq!(ids_of(&page), newest_first[2..4]);

    for limit in ["1", "2", "5", "1000"] {
        let all = list(&["--task", "dfa-simulation", "--limit", limit, "--all"]);
        assert_eq!((ids_of(&all), &all["next"]), (newest_first.clone(), &Value::Null), "{limit}");
    }

    daemon.until("/v1/runs?status=running", |list| list["runs"][0]["id"].is_string());
    assert_eq!(ids_of(&list(&["--status", "running"])), std::slice::from_ref(&open));
    assert_eq!(list(&["--status", "failed"]), json!({"runs": [], "next": null}));

    let table = runs(&daemon, &["list", "--limit", "3"]);
    assert!(table.stdout.contains(&open) && table.stdout.contains("3 runs"), "{}", table.stdout);
    assert!(
        !table.stdout.contains(&ids[0]) && table.stderr.contains("--after"),
        "{}",
        table.stderr
    );

    runs(&daemon, &["list", "--limit", "0"]).refused(&["--limit"]);
    runs(&daemon, &["list", "--status", "done"]).refused(&["--status", "verified"]);
    runs(&daemon, &["list", "--after", "run_0"]).failed(&["run_0", "status 400"]);

    let kept = runs(&daemon, &["gc", "--older-than-days", "1"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "removed 0 runs with 0 events, 0 bytes\n"));
    let removed = runs(&daemon, &["gc", "--bytes-max", "1", "--output", "json"]).json(0);
    assert_eq!(removed["runs"], json!(5), "{removed}");
    assert_eq!(ids_of(&list(&[])), [open], "open runs stay");
    assert_eq!(runs(&daemon, &["gc"]).code, 0);
}

#[test]
fn a_run_is_cancelled_and_forked() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = long(&daemon);
    let path = format!("/v1/runs/{id}");
    daemon.until(&path, |record| record["events"].as_u64() > Some(600));
    let cancelled = runs(&daemon, &["cancel", &id, "--output", "json"]).json(0);
    assert_eq!((&cancelled["id"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    let again = runs(&daemon, &["cancel", &id]);
    assert!(
        again.code == 0 && again.stdout.contains("cancelled"),
        "what is over stays as it is: {}",
        again.stdout
    );

    let fork = runs(&daemon, &["fork", &id, "--seq", "500", "--seed", "99"]);
    assert_eq!((fork.code, fork.stderr.as_str()), (0, ""));
    let child = runs(&daemon, &["show", fork.stdout.trim_end(), "--output", "json"]).json(0);
    assert_eq!(
        (&child["forked_from"], &child["seed"]),
        (&json!({"run": id, "seq": 500}), &json!(99))
    );

    let events = cancelled["events"].as_u64().unwrap();
    runs(&daemon, &["fork", &id, "--seq", &(events + 1).to_string()]).failed(&["status 409"]);
    runs(&daemon, &["fork", &id]).refused(&["--seq"]);
}

#[test]
fn a_trace_is_written_whole_or_not_at_all() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = submitted(&daemon, &["tower-of-hanoi", "--fanout", "1"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));

    let printed = runs(&daemon, &["trace", &id]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let lines = json_lines(&printed.stdout);
    assert_eq!(json!(lines.len() - 1), record["events"]);
    assert!(
        lines.iter().any(|line| line["event"] == "step" && line["state"].is_object()),
        "with states"
    );

    let bare = runs(&daemon, &["trace", &id, "--no-states"]).stdout;
    assert!(json_lines(&bare).iter().all(|line| line["state"].is_null()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let written = runs(&daemon, &["trace", &id, "--out", shown(&path)]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    assert!(std::fs::read_to_string(&path).unwrap() == printed.stdout);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(runs(&daemon, &["trace", &id, "--out", "/dev/null"]).code, 0);

    let nowhere = folder.path().join("missing/trace.jsonl");
    runs(&daemon, &["trace", &id, "--out", shown(&nowhere)]).refused(&[
        "--out",
        shown(&nowhere),
        "cannot be written",
    ]);
    runs(&daemon, &["trace", "run_0", "--out", shown(&nowhere)]).failed(&["run_0"]);
}
