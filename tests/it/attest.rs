//! Attestations: what a daemon signs about a run that is over, checked without it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::binary::{done, shown};
use crate::daemon::{Daemon, long_run};

/// A key in this folder: its file, and its public half.
fn key(folder: &Path, name: &str) -> (String, String) {
    let file = shown(&folder.join(name)).to_owned();
    let made = done(&["attest", "key", &file, "--output", "json"]).json(0);
    let public = made["public_key"].as_str().unwrap().to_owned();
    assert_eq!(made["created"], true);
    (file, public)
}

#[test]
fn a_run_is_attested_and_checked_without_its_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| shown(&folder.path().join(name)).to_owned();
    let (file, public) = key(folder.path(), "key.pem");
    let (_, other) = key(folder.path(), "other.pem");
    let again = done(&["attest", "key", &file, "--output", "json"]).json(0);
    assert_eq!((&again["created"], &again["public_key"]), (&json!(false), &json!(public)));

    let daemon = Daemon::start(&[&format!("server.attestation_key_file={file}")]);
    let location = daemon.submitted(&json!({"task": "n-queens", "index": 3}));
    let record = daemon.finished(&location);
    let id = record["id"].as_str().unwrap();

    // Labels given later are no part of what the run was accepted with.
    let url = daemon.url("");
    let labelled = done(&["runs", "label", id, "team:red", "--url", &url]);
    assert_eq!(labelled.code, 0, "{}", labelled.stderr);
    let (statement, trace) = (at("run.json"), at("run.jsonl"));
    for arguments in [
        ["runs", "attest", id, "--out", &statement, "--url", &url],
        ["runs", "trace", id, "--out", &trace, "--url", &url],
    ] {
        let made = done(&arguments);
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let events = at("events.jsonl");
    let made = done(&["runs", "trace", id, "--no-states", "--out", &events, "--url", &url]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    drop(daemon);

    let verify = |file: &str, key: &str, more: &[&str]| {
        let first = ["attest", "verify", file, "--key", key, "--output", "json"];
        done(&[&first, more].concat())
    };
    let held = verify(&statement, &public, &["--trace", &events]).json(0);
    assert_eq!((&held["holds"], &held["trace_checked"]), (&json!(true), &json!(true)));
    assert_eq!(held["record"]["answer"], record["answer"]);
    assert_eq!(held["record"]["labels"], json!({"team": "red"}));
    let spec: serde_json::Value = serde_json::from_str(held["spec"].as_str().unwrap()).unwrap();
    assert_eq!(spec["instance"], "n-queens/easy/003", "{spec}");
    assert_eq!(verify(&statement, &public, &[]).json(0)["trace_checked"], false);

    // Another key, a changed statement, a changed trace, one with states.
    let text = fs::read_to_string(&statement).unwrap();
    fs::write(at("changed.json"), text.replace("\"payload\": \"ey", "\"payload\": \"eY")).unwrap();
    let events_text = fs::read_to_string(&events).unwrap();
    fs::write(at("changed.jsonl"), events_text.replacen("place", "place ", 1)).unwrap();
    let cut: Vec<&str> = events_text.lines().collect();
    fs::write(at("cut.jsonl"), cut[..cut.len() - 1].join("\n") + "\n").unwrap();
    for (file, key, more, reason) in [
        (&statement, &other, vec![], "not by this key"),
        (&at("changed.json"), &public, vec![], "was changed"),
        (&statement, &public, vec!["--trace".to_owned(), at("changed.jsonl")], "is signed"),
        (&statement, &public, vec!["--trace".to_owned(), at("cut.jsonl")], "the signed record"),
        (&statement, &public, vec!["--trace".to_owned(), trace.clone()], "--no-states"),
    ] {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let refused = verify(file, key, &more).json(1);
        assert_eq!(refused["holds"], false);
        assert!(refused["reason"].as_str().unwrap().contains(reason), "{reason}: {refused}");
    }

    let shown = done(&["attest", "verify", &statement, "--key", &public]);
    assert!(shown.stdout.starts_with(&format!("signed by {public} at ")), "{}", shown.stdout);
    assert!(shown.stdout.contains("--trace FILE checks"), "{}", shown.stdout);
    done(&["attest", "verify", &statement, "--key", "ed25519:AAAA"]).refused(&["32 bytes"]);
    done(&["attest", "verify", &file, "--key", &public]).refused(&["it is no attestation"]);
}

#[test]
fn an_open_run_and_a_daemon_without_a_key_attest_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = key(folder.path(), "key.pem");
    let daemon = Daemon::start(&[&format!("server.attestation_key_file={file}")]);
    let open = daemon.submitted(&long_run());
    daemon.get(&format!("{open}/attestation")).refused(409, None, &["is not over"]);
    daemon.get("/v1/runs/run_0/attestation").refused(404, None, &["run_0"]);
    drop(daemon);

    let daemon = Daemon::start(&[]);
    let location = daemon.submitted(&json!({"task": "n-queens", "index": 0}));
    daemon.finished(&location);
    let refused = daemon.get(&format!("{location}/attestation"));
    refused.refused(409, None, &["prime-agents attest key", "server.attestation_key_file"]);
    drop(daemon);

    let wrong = format!("server.attestation_key_file={}", shown(&folder.path().join("none.pem")));
    let log = Daemon::try_start(&crate::daemon::Home::new(), &[&wrong]).err().unwrap_or_default();
    assert!(log.contains("server.attestation_key_file") && log.contains("none.pem"), "{log}");
}
