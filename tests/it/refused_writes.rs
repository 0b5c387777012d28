//! What the journal refuses costs the run that it belongs to, and nobody else. Triggers in the
//! daemon's own file refuse.

use rusqlite::Connection;
use serde_json::json;

use crate::daemon::{Daemon, Home, long_run};
use crate::records::chain;

/// A run of 2^n - 1 steps.
fn hanoi(n: u32) -> serde_json::Value {
    json!({"task": "tower-of-hanoi", "input": {"n": n, "from": 0, "to": 2}, "fanout": 1})
}

/// Lets the journal refuse these writes.
fn refuse(daemon: &Daemon, table: &str, condition: &str) {
    let connection = Connection::open(daemon.home.journal()).unwrap();
    connection.busy_timeout(crate::daemon::PATIENCE).unwrap();
    let name = format!("refuse_{table}");
    let sql = format!(
        "CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {condition}
         BEGIN SELECT RAISE(ABORT, 'refused by a test'); END"
    );
    connection.execute_batch(&sql).unwrap();
}

/// The number of a run in the journal.
fn number(daemon: &Daemon, location: &str) -> i64 {
    let connection = Connection::open(daemon.home.journal()).unwrap();
    let id = location.rsplit('/').next().unwrap();
    connection.query_row("SELECT no FROM run WHERE id = ?1", [id], |row| row.get(0)).unwrap()
}

/// Whether a batch of the two runs of a test has events of this one.
fn has_events_of(number: i64) -> String {
    // As SQL writes the bytes of a little-endian number.
    let number = u32::try_from(number).unwrap().swap_bytes();
    format!("x'{number:08x}' IN (substr(NEW.entries, 1, 4), substr(NEW.entries, 49, 4))")
}

#[test]
fn a_refused_write_fails_its_run_and_no_other() {
    let daemon = Daemon::start(&[]);
    let refused = daemon.submitted(&long_run());
    let other = daemon.submitted(&hanoi(15));
    daemon.with_events(&refused, 100);
    refuse(&daemon, "batch", &has_events_of(number(&daemon, &refused)));

    let record = daemon.finished(&refused);
    let failure = record["failure"].as_str().unwrap_or_default();
    assert!(record["status"] == "failed" && failure.contains("refused by a test"), "{record}");

    // The head is the last event that was committed, and the counts are those up to it.
    let chain = chain(&daemon, &refused);
    let events = record["events"].as_u64().unwrap();
    assert!(events >= 100 && chain.len() as u64 == events + 1, "{record}");
    assert_eq!(json!(chain[&events]), record["chain"]);
    assert_eq!(
        record["steps"].as_u64(),
        Some(events - 1),
        "every event after the first is a step: {record}"
    );

    assert_eq!(daemon.finished(&other)["status"], "verified");
    assert_eq!(daemon.finished(&daemon.submitted(&hanoi(4)))["status"], "verified");
    assert_eq!(daemon.get("/readyz").body["live_runs"], 0);
}

#[test]
fn a_refused_snapshot_costs_nothing_but_the_snapshot() {
    let daemon = Daemon::start(&[]);
    refuse(&daemon, "snapshot", "1");
    // More events than the first snapshot is due after.
    let record = daemon.finished(&daemon.submitted(&hanoi(15)));
    assert_eq!(
        (&record["status"], &record["steps"]),
        (&json!("verified"), &json!(32_767)),
        "{record}"
    );
}

#[test]
fn a_fork_that_cannot_be_copied_is_ended() {
    let daemon = Daemon::start(&[]);
    let parent = daemon.submitted(&hanoi(6));
    daemon.finished(&parent);

    refuse(&daemon, "batch", "1");
    let answer = daemon.post(&format!("{parent}/fork?seq=10"));
    assert!(answer.status >= 400, "{answer:?}");

    let list = daemon.get("/v1/runs").body;
    let fork = &list["runs"][0];
    assert!(fork["forked_from"]["seq"] == 10 && fork["status"] == "failed", "{fork}");
    assert!(
        fork["failure"].as_str().is_some_and(|why| why.contains("refused by a test")),
        "{fork}"
    );

    assert_eq!(daemon.get("/readyz").body["live_runs"], 0);
}

#[test]
fn an_unreadable_row_is_named_and_hides_no_other() {
    let daemon = Daemon::start(&[]);
    let locations = [3, 4, 5].map(|n| daemon.submitted(&hanoi(n)));
    locations.iter().for_each(|location| drop(daemon.finished(location)));
    let id = |location: &str| location.rsplit('/').next().unwrap().to_owned();

    let connection = Connection::open(daemon.home.journal()).unwrap();
    connection.execute("UPDATE run SET summary = '{}' WHERE id = ?1", [id(&locations[1])]).unwrap();

    let list = daemon.get("/v1/runs");
    assert_eq!(
        (list.status, &list.body["unreadable"]),
        (200, &json!([id(&locations[1])])),
        "{list:?}"
    );

    let listed = |run: &serde_json::Value| run["id"].as_str().unwrap().to_owned();
    let ids: Vec<_> = list.body["runs"].as_array().unwrap().iter().map(listed).collect();
    assert_eq!(ids, [id(&locations[2]), id(&locations[0])]);

    // What SQLite itself cannot decode.
    connection
        .execute("UPDATE run SET task = CAST(x'ff' AS TEXT) WHERE id = ?1", [id(&locations[1])])
        .unwrap();
    assert_eq!(daemon.get("/v1/runs").body["unreadable"], json!([id(&locations[1])]));

    // It counts for the page.
    let page = daemon.get("/v1/runs?limit=2").body;
    assert_eq!(page["next"], json!(id(&locations[1])), "{page}");
    assert_eq!(
        daemon.get(&format!("/v1/runs?after={}", id(&locations[1]))).body["runs"][0]["id"],
        id(&locations[0])
    );
}

#[test]
fn an_open_run_with_a_damaged_row_keeps_no_other_from_resuming() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let [damaged, other] = [20, 20].map(|n| daemon.submitted(&hanoi(n)));
    [&damaged, &other].iter().for_each(|location| drop(daemon.with_events(location, 10)));
    daemon.end_by(rustix::process::Signal::KILL);

    let connection = Connection::open(home.journal()).unwrap();
    let id = damaged.rsplit('/').next().unwrap();
    connection.execute("UPDATE run SET summary = CAST(x'ff' AS TEXT) WHERE id = ?1", [id]).unwrap();
    drop(connection);

    let daemon = Daemon::start_in(&home, &[]);
    assert_eq!(daemon.until(&other, |record| record["resumed"] == 1)["status"], "running");

    let list = daemon.get("/v1/runs").body;
    assert_eq!(
        (&list["unreadable"], list["runs"].as_array().unwrap().len()),
        (&json!([id]), 1),
        "{list}"
    );
    daemon.get(&damaged).refused(500, None, &["journal is damaged", id, "summary"]);
}
