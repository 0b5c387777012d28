//! `runs verify-chain`.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{SCRIPTED, long, runs, server_of, submitted};
use crate::binary::done;
use crate::daemon::Daemon;

#[test]
fn the_chain_of_a_run_agrees_with_its_record() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let id = submitted(&daemon, &["tower-of-hanoi", "--fanout", "2"]);
    let record = daemon.finished(&format!("/v1/runs/{id}"));

    let report = runs(&daemon, &["verify-chain", &id, "--output", "json"]).json(0);
    assert_eq!((&report["agrees"], &report["events"]), (&json!(true), &record["events"]));
    assert_eq!((&report["recorded"], &report["computed"]), (&record["chain"], &record["chain"]));

    let open = long(&daemon);
    daemon.until(&format!("/v1/runs/{open}"), |record| record["events"].as_u64() > Some(100));

    let of_open = runs(&daemon, &["verify-chain", &open]);
    assert!(
        of_open.code == 0 && of_open.stdout.contains("events agree"),
        "{}{}",
        of_open.stdout,
        of_open.stderr
    );
}

/// A trace without states, and its chain as this file computes it.
fn trace_of(events: &[&str]) -> (String, String) {
    let spec = r#"{"task":"x"}"#;
    let mut hash = Sha256::digest(spec);
    let mut text =
        format!("{{\"seq\":0,\"event\":\"accepted\",\"run\":\"run_1\",\"spec\":{spec}}}\n");
    for (seq, event) in (1..).zip(events) {
        hash = Sha256::new().chain_update(hash).chain_update(event).finalize();
        text += &format!("{{\"seq\":{seq},{}\n", &event[1..]);
    }
    (text, hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat())
}

#[test]
fn a_changed_lost_or_added_event_is_found() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let mut record = daemon.finished(&format!("/v1/runs/{id}"));
    let end = json!({"outcome": record["outcome"], "verified": true, "answer": record["answer"]})
        .to_string();
    let end = format!(r#"{{"event":"finished",{}"#, &end[1..]);
    let events = [r#"{"event":"started"}"#, r#"{"event":"step","action":"a"}"#, &end];
    let (whole, chain) = trace_of(&events);

    record["events"] = json!(3);
    record["chain"] = json!(chain);

    let rows = [
        (whole.clone(), 0, "3 events agree"),
        (whole.replace(r#""a""#, r#""b""#), 1, "the record says"),
        (trace_of(&events[..2]).0, 1, "the trace has 2 events, the record 3"),
        (
            trace_of(&[&events[..], &events[..1]].concat()).0,
            1,
            "the trace has 4 events, the record 3",
        ),
        (whole.replace(r#""seq":2"#, r#""seq":5"#), 1, "line 3 of the trace is not event 2"),
        (whole.replace("run_1", "run_2"), 1, "line 1 of the trace"),
    ];

    for (trace, code, part) in rows {
        let (url, server) = server_of(vec![("200 OK", record.to_string()), ("200 OK", trace)]);
        let verified = done(&["runs", "verify-chain", "run_1", "--url", &url]);
        assert_eq!(verified.code, code, "{part}: {}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains(part), "{part:?} is missing in {}", verified.stdout);
        server.join().unwrap();
    }

    let changed = |field: &str, value| {
        let mut record = record.clone();
        record[field] = value;
        record
    };
    for (record, part) in [
        (changed("answer", json!({"queens": [0]})), r#"the record's answer is {"queens":[0]}"#),
        (changed("answer", json!(null)), "the record's answer is none"),
        (changed("verified", json!(false)), "`verified` is false in the record, but true"),
        (changed("outcome", json!("stuck")), "the record's outcome is stuck"),
        (changed("status", json!("failed")), "the record's status is failed"),
    ] {
        let (url, server) =
            server_of(vec![("200 OK", record.to_string()), ("200 OK", whole.clone())]);
        let verified = done(&["runs", "verify-chain", "run_1", "--url", &url]);
        assert_eq!(verified.code, 1, "{part}: {}{}", verified.stdout, verified.stderr);
        assert!(verified.stdout.contains(part), "{part:?} is missing in {}", verified.stdout);
        server.join().unwrap();
    }
}
