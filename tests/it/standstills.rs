//! Runs that are under way and tell nothing new: a webhook and a metric say so.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Home};
use crate::webhooks::{next, receiver, webhook};

/// An executor, a program, that never answers.
fn silent() -> [String; 3] {
    let program = "import json, sys
print(json.dumps({'prime': 1}), flush=True)
for line in sys.stdin: pass";
    [
        "agents.executor.implementation=process".to_owned(),
        format!("agents.executor.program.command={}", json!(["python3", "-c", program])),
        "agents.executor.program.timeout_ms=3600000".to_owned(),
    ]
}

fn request() -> Value {
    json!({"task": "n-queens", "fanout": 1, "labels": {"team": "ops"}})
}

fn cancel(daemon: &Daemon, run: &str) {
    assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200);
    daemon.finished(run);
}

#[test]
fn a_standstill_is_told_once_with_what_the_run_waits_for() {
    let (url, messages) = receiver(&[204]);
    let hook = webhook("ops", &url, "");
    let silent = silent();
    let sets: Vec<&str> = silent
        .iter()
        .map(String::as_str)
        .chain([hook.as_str(), "server.stuck_ms=300", "queue.running_max=1"])
        .collect();
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &sets);
    let run = daemon.submitted(&request());
    // It waits for a place, which is no standstill.
    let queued = daemon.submitted(&request());

    let said = next(&messages).verified();
    assert_eq!(said["type"], "run.stuck");
    let data = &said["data"];
    assert_eq!(data["run"], run.rsplit('/').next().unwrap());
    assert_eq!((&data["status"], &data["labels"]), (&json!("running"), &json!({"team": "ops"})));
    let waits = json!([{"role": "executor", "agent": "process", "turns": 1}]);
    assert_eq!(data["waits_for"], waits, "{said}");
    assert_eq!(data["events"], daemon.get(&run).body["events"]);
    let since: jiff::Timestamp = data["since"].as_str().unwrap().parse().unwrap();
    let told: jiff::Timestamp = said["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(told.duration_since(since).as_millis() >= 300, "{said}");
    daemon.until_text("/metrics", |text| text.contains("\nprime_runs_stuck 1\n"));

    // Nothing is told again before the end.
    cancel(&daemon, &queued);
    assert_eq!(next(&messages).verified()["type"], "run.ended");
    cancel(&daemon, &run);
    assert_eq!(next(&messages).verified()["type"], "run.ended");
    daemon.until_text("/metrics", |text| text.contains("\nprime_runs_stuck 0\n"));
}

#[test]
fn a_run_that_goes_on_is_not_stuck_and_no_limit_finds_none() {
    let daemon = Daemon::start(&["server.stuck_ms=60000"]);
    let run = daemon.submitted(&crate::daemon::long_run());
    daemon.with_events(&run, 1_000);
    assert!(daemon.text("/metrics").contains("\nprime_runs_stuck 0\n"));
    drop(daemon);

    let silent = silent();
    let sets: Vec<&str> = silent.iter().map(String::as_str).chain(["server.stuck_ms=0"]).collect();
    let daemon = Daemon::start(&sets);
    let run = daemon.submitted(&request());
    daemon.until(&run, |record| record["status"] == "running");
    assert!(daemon.text("/metrics").contains("\nprime_runs_stuck 0\n"));
}
