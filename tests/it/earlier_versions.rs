//! What earlier versions wrote, opened by this one (`tests/fixtures/README.md`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{done, shown};
use crate::daemon::{Daemon, Home, is_over};

/// The run of the journal of 0.1 that was under way, and the one with a reviewed step.
const OPEN: &str = "run_1a228cc383ad6817611c99f79fd";
const REVIEWED: &str = "run_1a228cc364d72fd14948b5c539f";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1").join(name)
}

/// A copy of a file, because programs write beside it.
fn copied(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::copy(fixture(name), &path).unwrap();
    (folder, path)
}

#[test]
fn a_journal_of_0_1_is_whole() {
    let (_folder, file) = copied("runs.sqlite");
    let checked = done(&["journal", "check", shown(&file)]);
    let expected = "4 runs with 57 events are whole\n";
    assert_eq!((checked.code, checked.stdout.as_str()), (0, expected), "{}", checked.stderr);
}

#[test]
fn a_daemon_lists_verifies_and_resumes_the_runs_of_0_1() {
    let home = Home::new();
    fs::copy(fixture("runs.sqlite"), home.journal()).unwrap();
    // The runs are older than what is kept by default.
    let daemon = Daemon::start_in(&home, &["journal.retention_days=0"]);

    let resumed = daemon.finished(&format!("/v1/runs/{OPEN}"));
    assert_eq!(
        (&resumed["status"], &resumed["resumed"], &resumed["answer"]["moves"]),
        (&json!("verified"), &json!(1), &json!(15)),
        "{resumed}"
    );

    let rows = [
        (
            "run_1a228cc37a445870c34b4f09239",
            "problem",
            6,
            json!([5, 8]),
            "775f05ff09e3239696b9ac8e91f4bfe8f83faa8150b8407a79fef148ffe94598",
        ),
        (
            "run_1a228cc36daa17d621ad8520521",
            "tower-of-hanoi",
            19,
            json!({
                "moves": 7, "disk_moves": [4, 2, 1], "pair_moves": [1, 3, 1, 1, 0, 1],
                "pegs": [[], [], [3, 2, 1]]
            }),
            "0014e7ae7cd8a61cfb452a18b6bee10da241acd8fd7fead7bf1edc8b065d0112",
        ),
        (
            REVIEWED,
            "bubble-sort",
            27,
            json!({"sorted": [1, 2, 3], "comparisons": 3, "swaps": 2, "passes": 2}),
            "a3cd9b7a3f98b92c0118849f2351f30891b547b3a0c8f1f08b11cb0b5bb93260",
        ),
    ];
    let page = daemon.get("/v1/runs").body;
    let listed = page["runs"].as_array().unwrap();
    assert_eq!(listed.len(), 4, "{page}");
    for (record, (id, task, events, answer, chain)) in listed[1..].iter().zip(&rows) {
        assert!(is_over(record), "{record}");
        let found = ["id", "task", "events", "answer", "chain", "status"].map(|key| &record[key]);
        let expected = [
            json!(id),
            json!(task),
            json!(events),
            answer.clone(),
            json!(chain),
            json!("verified"),
        ];
        assert_eq!(found, expected.each_ref());
    }

    for id in [OPEN].into_iter().chain(rows.iter().map(|row| row.0)) {
        let chain = done(&["runs", "verify-chain", id, "--url", &daemon.url("")]);
        assert_eq!(chain.code, 0, "{id}: {}{}", chain.stdout, chain.stderr);
    }

    // Their journal has no search index: the daemon makes one.
    let is_found = |page: &Value| page["runs"][0]["id"] == REVIEWED;
    daemon.until("/v1/runs?q=comparisons+%22cmp+0+1%22&flagged=true", is_found);
    daemon.until("/v1/runs?q=pair_moves", |page| page["incomplete"].is_null());
    let by_answer = daemon.get("/v1/runs?q=pair_moves&task=tower-of-hanoi").body;
    assert!(by_answer["runs"].as_array().is_some_and(|runs| !runs.is_empty()), "{by_answer}");

    let reviewed = daemon.get(&format!("/v1/runs/{REVIEWED}")).body;
    assert_eq!(reviewed["reviews"], json!({"needed": 7, "open": 6, "rejected": 1}));
    let step = &daemon.get(&format!("/v1/runs/{REVIEWED}/reviews?limit=1")).body["steps"][0];
    assert_eq!((&step["seq"], &step["review"]["note"]), (&json!(10), &json!("no neighbours")));
}

#[test]
fn records_of_0_1_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (study, records) = (fixture("study.toml"), fixture("records.jsonl"));
    let checked = done(&["study", "check", shown(&study)]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);

    let out = folder.path().join("report");
    let arguments = ["--study", shown(&study), "--out", shown(&out), "--output", "json"];
    let report: Value =
        done(&[&["study", "report", shown(&records)], &arguments[..]].concat()).json(0);
    assert_eq!(report["runs"], json!(8));

    // System, tasks, instances, runs, accuracy: two of four answers of the single pass are right.
    let summary = fs::read_to_string(out.join("tables/summary.csv")).unwrap();
    for row in ["single pass,2,4,4,50.0,", "PRIME,2,4,4,100.0,"] {
        assert!(summary.contains(row), "{row:?} is missing in {summary}");
    }
}

#[test]
fn a_configuration_of_0_1_says_what_it_said() {
    let text = fs::read_to_string(fixture("configuration.toml")).unwrap();
    let written: toml::Table = text.parse().unwrap();
    let shown_now = done(&["config", "show", "--config", shown(&fixture("configuration.toml"))]);
    assert_eq!(shown_now.code, 0, "{}", shown_now.stderr);

    // Later versions have more keys; those of then keep their values.
    let now: toml::Table = shown_now.stdout.parse().unwrap();
    assert_kept("", &written, &now);
    assert!(text.contains("\nretention_days = 30\n") && text.contains("\nfanout = 4\n"));
}

/// Fails unless all keys of a table are in another one with the same values.
fn assert_kept(path: &str, written: &toml::Table, now: &toml::Table) {
    for (key, value) in written {
        let path = format!("{path}.{key}");
        let found = now.get(key).unwrap_or_else(|| panic!("{path} is missing"));
        match (value, found) {
            (toml::Value::Table(value), toml::Value::Table(found)) => {
                assert_kept(&path, value, found);
            }
            _ => assert_eq!(value, found, "{path}"),
        }
    }
}

#[test]
fn a_trace_of_0_1_is_replayed() {
    let recording = format!("agents.executor.recording={}", shown(&fixture("trace.jsonl")));
    let arguments = ["run", "n-queens", "--output", "json", "--set", &recording];
    let replayed =
        done(&[&arguments[..], &["--set", "agents.executor.implementation=replay"]].concat())
            .json(0);
    assert_eq!(replayed["answer"], json!({"queens": [4, 1, 3, 0, 2], "backtracks": 2}));
}
