//! Clocks that are wrong remove no run. The tests move the journal back instead of the clock ahead.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home};

const DAY_MS: i64 = 86_400_000;

/// Changes a journal's file, for `ms` in SQL.
fn change(file: &Path, sql: &str, ms: i64) {
    let code = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as file: file.execute(sys.argv[2], [int(sys.argv[3])])";
    let mut command = Command::new("python3");
    let ended = command.args(["-c", code]).arg(file).args([sql, &ms.to_string()]).status();
    assert!(ended.unwrap().success());
}

/// A journal with a run, and when that ended, in milliseconds since 1970.
fn journal() -> (Arc<Home>, i64) {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let input = json!({"n": 2, "from": 0, "to": 2});
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "input": input, "fanout": 1}));
    let record = daemon.finished(&run);
    daemon.end_by(Signal::TERM);

    let ended: jiff::Timestamp = record["updated_at"].as_str().unwrap().parse().unwrap();
    (home, ended.as_millisecond())
}

/// The runs that the configured retention removes at once.
fn removed(home: &Arc<Home>, sets: &[&str]) -> Value {
    let daemon = Daemon::start_in(home, sets);
    let answer = daemon.post_text("/v1/gc", "{}");
    assert_eq!(answer.status, 200, "{answer:?}");
    daemon.end_by(Signal::TERM);
    answer.body["runs"].clone()
}

#[test]
fn a_jump_ahead_removes_no_run_until_it_is_trusted() {
    let (home, ended) = journal();
    // The run ended 31 days ago, and that is the last that the journal knows: nothing tells whether
    // the clock is right.
    let file = home.journal();
    change(&file, "UPDATE run SET created_ms = ?1, updated_ms = ?1", ended - 31 * DAY_MS);
    assert_eq!(removed(&home, &[]), 0);
    // Each start is as careful as the one before it.
    assert_eq!(removed(&home, &[]), 0);

    // Once the journal has seen the present, the run is old.
    let seen = "INSERT OR REPLACE INTO meta VALUES ('reached_ms', ?1)";
    change(&file, seen, ended - 20 * DAY_MS);
    assert_eq!(removed(&home, &[]), 0);
    change(&file, seen, ended);
    assert_eq!(removed(&home, &[]), 1);
}

#[test]
fn who_trusts_the_clock_may_say_so() {
    let (home, ended) = journal();
    change(&home.journal(), "UPDATE run SET created_ms = ?1, updated_ms = ?1", ended - 31 * DAY_MS);
    assert_eq!(removed(&home, &["journal.clock_trust_hours=0"]), 1);
}
