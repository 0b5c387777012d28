//! The daemon's guarantees: an accepted run is never lost; a committed step never changes; an
//! uncommitted step may be computed twice but becomes visible once.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Home, is_over, long_run, server_sent};
use crate::figures::promise;
use crate::records::chain;

const SCRIPTED: &str = "agents.executor.implementation=scripted";

/// Bytes by which a journal may still grow: too few for a run.
const ROOM: u64 = 256 << 10;

/// A run of 2^n - 1 steps, with errors where the executor makes some.
fn lively(n: u32, seed: u64) -> Value {
    json!({
        "task": "tower-of-hanoi", "input": {"n": n, "from": 0, "to": 2}, "fanout": 1, "seed": seed,
    })
}

#[test]
fn a_killed_daemon_goes_on_where_it_was() {
    let daemon = Daemon::start(&[]);
    // Too little for the whole run, which therefore cannot be over when the daemon is killed.
    daemon.limit_journal(Some(ROOM));
    let run = daemon.submitted(&lively(16, 1));
    daemon.until_not_writable();
    let before = daemon.get(&run).body;
    assert!(before["events"].as_u64() > Some(0) && before["status"] == "running", "{before}");

    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    let after = daemon.finished(&run);
    assert_eq!((&after["status"], &after["resumed"]), (&json!("verified"), &json!(1)));
    assert_eq!(
        (&after["steps"], &after["proposals"]),
        (&json!(65_535), &json!(65_535)),
        "no step is made twice"
    );

    let chain = chain(&daemon, &run);
    assert_eq!(
        json!(chain[&before["events"].as_u64().unwrap()]),
        before["chain"],
        "a committed step has changed"
    );
    assert_eq!(json!(chain[&after["events"].as_u64().unwrap()]), after["chain"]);

    let trace = daemon.text(&format!("{run}/trace?states=false"));
    assert_eq!(trace.matches(r#""event":"resumed""#).count(), 1);
}

#[test]
fn a_run_of_a_scripted_executor_makes_the_same_steps_with_and_without_a_kill() {
    let whole = Daemon::start(&[SCRIPTED]);
    let run = whole.submitted(&lively(12, 5));
    whole.finished(&run);

    let steps = |daemon: &Daemon, run: &str| -> Vec<(Value, Value)> {
        let trace = daemon.text(&format!("{run}/trace"));
        let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["event"] == "step")
            .map(|line| (line["state"].clone(), line["action"].clone()))
            .collect()
    };

    let expected = steps(&whole, &run);
    assert!(expected.len() > 4_095, "errors are in it");

    let mut daemon = Daemon::start(&[SCRIPTED]);
    let run = daemon.submitted(&lively(12, 5));
    for events in [100, 1_000, 2_500] {
        let seen = daemon
            .until(&run, |record| record["events"].as_u64().unwrap() >= events || is_over(record));
        assert!(!seen["id"].is_null());
        daemon = Daemon::start_in(&daemon.kill(), &[SCRIPTED]);
    }
    daemon.finished(&run);
    assert!(steps(&daemon, &run) == expected, "the steps differ");
}

/// The steps of each slot, in order.
fn slots(daemon: &Daemon, run: &str) -> BTreeMap<String, Vec<Value>> {
    let mut slots: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in daemon.text(&format!("{run}/trace?states=false")).lines() {
        let line: Value = serde_json::from_str(line).expect("a line of a trace");
        if line["event"] == "step" {
            let slot = format!("{} {}", line["round"], line["trajectory"]);
            slots.entry(slot).or_default().push(line["action"].clone());
        }
    }
    slots
}

/// What such a search knows besides its trajectories comes back from a snapshot and from events.
#[test]
fn a_search_that_branches_makes_the_same_steps_with_and_without_a_kill() {
    let sets = [SCRIPTED, "agents.executor.error_rate=0.1", "run.uct.exploration=0.02"];
    for strategy in ["particle_filter", "uct"] {
        // Snapshots are taken from 16,384 events on.
        let mut request = lively(12, 5);
        request["strategy"] = json!(strategy);
        request["fanout"] = json!(5);

        let whole = Daemon::start(&sets);
        let run = whole.submitted(&request);
        let record = whole.finished(&run);
        assert_eq!(record["status"], "verified", "{record}");
        let expected = slots(&whole, &run);

        let mut daemon = Daemon::start(&sets);
        let run = daemon.submitted(&request);
        for events in [100, 9_000, 18_000] {
            daemon.until(&run, |record| {
                record["events"].as_u64().unwrap() >= events || is_over(record)
            });
            daemon = Daemon::start_in(&daemon.kill(), &sets);
        }
        let again = daemon.finished(&run);
        assert_eq!(again["search"], record["search"], "{strategy}");
        assert!(slots(&daemon, &run) == expected, "{strategy}: the steps differ");
    }
}

/// Does something `count` times on several threads.
fn at_once<T: Send>(count: usize, threads: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return done;
                }
                done.push(act(index));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn a_thousand_requests_with_one_key_are_one_run() {
    let daemon = Daemon::start(&["server.queue_max=4"]);
    let request = json!({"task": "n-queens", "index": 3});
    let answers = at_once(1_000, 64, |_| daemon.with_key("once", &request));
    let ids: BTreeSet<_> = answers
        .iter()
        .map(|answer| answer.body["id"].as_str().expect("a run").to_owned())
        .collect();
    assert_eq!(ids.len(), 1);

    let new = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!((new, answers.iter().filter(|answer| answer.status == 200).count()), (1, 999));
    assert_eq!(daemon.get("/v1/runs").body["runs"].as_array().unwrap().len(), 1);

    // The key is remembered by the journal, and belongs to its request.
    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    let again = daemon.with_key("once", &request);
    assert_eq!((again.status, again.body["id"].as_str()), (200, ids.first().map(String::as_str)));
    daemon.with_key("once", &json!({"task": "n-queens", "index": 4})).refused(
        422,
        Some("Idempotency-Key"),
        &["another request"],
    );
    for key in ["", &"x".repeat(256)] {
        daemon.with_key(key, &request).refused(400, Some("Idempotency-Key"), &["1 to 255"]);
    }
}

#[test]
fn a_watcher_sees_every_event_once_across_a_kill() {
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&lively(14, 2));

    let mut seen = Vec::new();
    // The first part of the stream; the connection is dropped in its midst.
    let mut response = daemon.client.get(daemon.url(&format!("{run}/events"))).send().unwrap();
    let mut part = vec![0; 200_000];
    response.read_exact(&mut part).unwrap();
    drop(response);

    let part = String::from_utf8(part).unwrap();
    let whole_events = part.rfind("\n\n").unwrap();
    seen.extend(server_sent(&part[..whole_events + 2]));
    let last = seen.last().unwrap().0;

    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    let request = daemon.client.get(daemon.url(&format!("{run}/events")));
    let text = request.header("Last-Event-ID", last.to_string()).send().unwrap().text().unwrap();
    seen.extend(server_sent(&text));

    let (_, name, result) = seen.pop().unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((name.as_str(), &result["status"]), ("result", &json!("verified")));

    assert_eq!(
        seen.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(),
        (1..=result["events"].as_u64().unwrap()).collect::<Vec<_>>()
    );
    assert_eq!(seen.last().unwrap().1, "finished");

    let committed = seen.iter().filter(|(_, name, _)| name == "step").count();
    assert_eq!(committed, 16_383, "the reference makes no step twice, and none is shown twice");
}

#[test]
fn a_drain_with_runs_and_watchers_is_quick_and_loses_nothing() {
    let daemon = Arc::new(Daemon::start(&["server.queue_max=100"]));
    let runs: Vec<_> = (0..100).map(|_| daemon.submitted(&long_run())).collect();
    let watchers: Vec<_> = runs
        .iter()
        .map(|run| {
            let url = daemon.url(&format!("{run}/events?after=1000000000"));
            let response = daemon.client.get(url).send().unwrap();
            std::thread::spawn(move || response.text().map(|text| text.len()))
        })
        .collect();

    let daemon = Arc::into_inner(daemon).unwrap();
    let home = Arc::clone(&daemon.home);

    let asked = Instant::now();
    let (code, log) = daemon.end_by(Signal::TERM);
    promise("a drain with 100 runs", asked.elapsed(), Duration::from_secs(5));
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");

    for watcher in watchers {
        watcher.join().unwrap().expect("the stream ended in order");
    }

    let daemon = Daemon::start_in(&home, &["server.queue_max=100"]);
    for run in &runs {
        let record = daemon.until(run, |record| record["resumed"] == 1 || is_over(record));
        assert_eq!(record["status"], "running");
    }
    assert_eq!(daemon.submit(&long_run()).status, 429, "resumed runs have their places");
}

#[test]
fn a_fork_begins_where_it_says_and_stands_alone() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let run = daemon.submitted(&lively(10, 3));
    let parent = daemon.finished(&run);

    let fork = daemon.post(&format!("{run}/fork?seq=500&seed=99"));
    assert_eq!(fork.status, 202, "{fork:?}");
    let child = fork.location.unwrap();
    let record = daemon.finished(&child);
    assert_eq!((&record["seed"], &record["resumed"]), (&json!(99), &json!(0)));
    assert_eq!(record["forked_from"], json!({"run": parent["id"], "seq": 500}));

    let lines = |run: &str| -> Vec<String> {
        let text = daemon.text(&format!("{run}/trace?states=false"));
        text.lines().skip(1).map(str::to_owned).collect()
    };

    let (ours, theirs) = (lines(&child), lines(&run));
    assert!(ours[..500] == theirs[..500], "the first 500 events are the parent's");
    assert!(ours[500].contains(r#""event":"forked""#), "{}", ours[500]);
    let of_fork: Value = serde_json::from_str(&ours[500]).unwrap();
    assert_eq!((&of_fork["seq"], &of_fork["parent_seq"]), (&json!(501), &json!(500)));
    assert_eq!(ours[500].matches(r#""seq":"#).count(), 1, "{}", ours[500]);
    assert!(ours[501..] != theirs[500..], "another seed goes another way");
    assert_eq!(daemon.get(&run).body, parent, "the parent is as it was");
    chain(&daemon, &child);

    let last = parent["events"].as_u64().unwrap();
    daemon.post(&format!("{run}/fork?seq={last}")).refused(409, None, &["was over"]);
    daemon.post(&format!("{run}/fork?seq={}", last + 1)).refused(409, None, &[&last.to_string()]);
    for (query, field) in
        [("", "seq"), ("?seq=-1", "seq"), ("?seq=x", "seq"), ("?seq=1&sed=2", "sed")]
    {
        daemon.post(&format!("{run}/fork{query}")).refused(400, Some(field), &["query"]);
    }
    daemon.post("/v1/runs/run_0/fork?seq=1").refused(404, None, &["run_0"]);
}

#[test]
fn a_cancelled_run_keeps_what_is_committed() {
    let daemon = Daemon::start(&[]);
    let run = daemon.submitted(&long_run());
    let before = daemon.with_events(&run, 1_000);
    let cancelled = daemon.post(&format!("{run}/cancel"));
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelled")));
    assert!(cancelled.body["steps"].as_u64().unwrap() >= before["steps"].as_u64().unwrap());

    let chain = chain(&daemon, &run);
    assert_eq!(json!(chain[&before["events"].as_u64().unwrap()]), before["chain"]);

    let daemon = Daemon::start_in(&daemon.kill(), &[]);
    assert_eq!(daemon.get(&run).body, cancelled.body);
    assert_eq!(
        daemon.post(&format!("{run}/cancel")).body,
        cancelled.body,
        "what is over stays as it is"
    );
    daemon.post("/v1/runs/run_0/cancel").refused(404, None, &["run_0"]);
}

#[test]
fn finished_runs_are_listed_and_removed() {
    let daemon = Daemon::start(&[SCRIPTED]);
    let runs: Vec<_> = (0..7)
        .map(|index| daemon.submitted(&json!({"task": "dfa-simulation", "index": index})))
        .collect();
    for run in &runs {
        daemon.finished(run);
    }

    let open = daemon.submitted(&long_run());
    let all = daemon.get("/v1/runs").body["runs"].as_array().unwrap().clone();
    assert_eq!(all.len(), 8);
    assert_eq!(format!("/v1/runs/{}", all[0]["id"].as_str().unwrap()), open, "newest first");

    let mut pages = Vec::new();
    let mut next = String::new();
    loop {
        let page = daemon.get(&format!("/v1/runs?limit=3&task=dfa-simulation{next}")).body;
        pages.extend(page["runs"].as_array().unwrap().clone());
        let Some(last) = page["next"].as_str() else { break };
        next = format!("&after={last}");
    }
    assert_eq!(pages, all[1..]);

    daemon.until("/v1/runs?status=running", |page| {
        page["runs"].as_array().is_some_and(|runs| runs.len() == 1)
    });

    for query in ["limit=0", "limit=1001", "status=finished", "tasks=x"] {
        assert_eq!(daemon.get(&format!("/v1/runs?{query}")).status, 400, "{query}");
    }
    daemon.get("/v1/runs?after=run_0").refused(400, Some("after"), &["run_0"]);

    let removed = daemon.post_text("/v1/gc", r#"{"bytes_max": 1}"#);
    assert_eq!((removed.status, &removed.body["runs"]), (200, &json!(7)), "{removed:?}");
    assert_eq!(daemon.get("/v1/runs").body["runs"].as_array().unwrap().len(), 1);
    daemon.get(&runs[0]).refused(404, None, &["journal.retention_days"]);
    assert_eq!(daemon.get(&open).status, 200, "open runs always stay");
    daemon.post_text("/v1/gc", r#"{"older_than_days": 36501}"#).refused(
        400,
        Some("older_than_days"),
        &["36500"],
    );
    daemon.post_text("/v1/gc", r#"{"older_than": 1}"#).refused(
        400,
        Some("older_than"),
        &["older_than_days"],
    );
}

#[test]
fn a_journal_belongs_to_one_daemon() {
    let first = Daemon::start(&[]);
    let log = Daemon::try_start(&first.home, &[]).err().expect("refused");
    for part in ["journal.path", "another process", "--set journal.path=FILE"] {
        assert!(log.contains(part), "{part:?} is missing in {log}");
    }
    assert_eq!(first.get("/readyz").status, 200);
}

#[test]
fn files_that_are_no_journal_are_left_alone() {
    let home = Home::new();
    std::fs::write(home.journal(), "something else entirely, long enough not to be an empty file")
        .unwrap();
    let log = Daemon::try_start(&home, &[]).err().expect("refused");
    assert!(log.contains("journal.path"), "{log}");
    assert!(
        std::fs::read_to_string(home.journal()).unwrap().starts_with("something else"),
        "it was overwritten"
    );
}
