//! `study run` on servers: prompts to an OpenAI-compatible one, and daemons that carry out runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::binary::{done, file, prime, shown};
use crate::daemon::{Daemon, Home};

/// Two prompts to the pool `mine`.
const PROMPTS: &str = r#"
[study]
name = "prompts"
null = false
[ask]
tasks = ["n-queens-last-queen"]
difficulties = ["easy"]
instances = INSTANCES
[[system]]
name = "baseline"
prompt = "baseline"
pool = "mine"
[[system]]
name = "structured"
prompt = "structured"
pool = "mine"
"#;

/// A daemon whose executor gives the same answer to every problem in words.
fn server() -> Daemon {
    let lines = r#"agents.executor.lines=["{\"column\": 1}"]"#;
    Daemon::start(&[
        "agents.executor.implementation=replay",
        lines,
        "agents.verifier.implementation=none",
    ])
}

fn pool(daemon: &Daemon) -> String {
    format!("pools.mine.upstreams=[{{url=\"{}\", model=\"prime\"}}]", daemon.url("/v1"))
}

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("records");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// Instances of the benchmark whose answer is column 1, by index.
fn right(instances: usize) -> Vec<bool> {
    let count = instances.to_string();
    let arguments = [
        "--task",
        "n-queens-last-queen",
        "--difficulty",
        "easy",
        "--instances",
        &count,
        "--base-seed",
        "7",
    ];
    let generated = done(&[&["bench", "generate", "--out", "-"][..], &arguments].concat());
    let line = |line: &str| {
        serde_json::from_str::<Value>(line).expect("an instance")["answer"]["column"] == 1
    };
    generated.stdout.lines().map(line).collect()
}

#[test]
fn a_servers_texts_are_judged_for_each_prompt() {
    let daemon = server();
    let (folder, path) = file("prompts.toml", &PROMPTS.replace("INSTANCES", "12"));
    let out = folder.path().join("prompts.jsonl");

    let ran =
        done(&["study", "run", shown(&path), "--records", shown(&out), "--set", &pool(&daemon)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let (records, right) = (records(&out), right(12));
    assert_eq!(records.len(), 24);
    assert!(right.contains(&true) && right.contains(&false), "{right:?}");

    for record in &records {
        assert_eq!(record["status"], "measured", "{record}");
        assert_eq!(record["format"], "passed", "an answer can be extracted: {record}");
        assert_eq!(
            record["right"],
            right[usize::try_from(record["index"].as_u64().unwrap()).unwrap()],
            "{record}"
        );
        let prompt = format!("prompt={}", record["system"].as_str().unwrap());
        assert_eq!(record["factors"], prompt.as_str());
        assert!(record["size"].as_u64().is_some_and(|size| (4..=6).contains(&size)), "{record}");
    }
}

#[test]
fn a_server_that_dies_leaves_runs_that_are_not_measured_and_due_again() {
    let daemon = server();
    let (folder, path) = file("prompts.toml", &PROMPTS.replace("INSTANCES", "200"));
    let out = folder.path().join("prompts.jsonl");
    let patience = ["pools.mine.queue_timeout_ms=20", "pools.mine.retries_max=0"];
    let arguments = |pool: &str| {
        let base = ["study", "run", shown(&path), "--records", shown(&out), "--set", pool];
        let sets = patience.iter().flat_map(|set| ["--set", *set]);
        base.into_iter().chain(sets).map(str::to_owned).collect::<Vec<_>>()
    };

    let first = arguments(&pool(&daemon));
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let mut child =
        prime(&[&first[..], &["--concurrent", "4"]].concat()).spawn().expect("the binary starts");

    while !std::fs::read_to_string(&out).is_ok_and(|text| text.lines().count() > 2) {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "the study ended before the server did"
        );
        std::thread::yield_now();
    }

    drop(daemon.kill());
    let ended = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("were not measured, and are due at the next"), "{said}");

    let so_far = records(&out);
    let measured = so_far.iter().filter(|record| record["status"] == "measured").count();
    assert!(
        measured > 2 && measured < so_far.len() && so_far.len() == 400,
        "{measured} of {}",
        so_far.len()
    );

    for lost in so_far.iter().filter(|record| record["status"] == "not_measured") {
        assert!(lost["failure"].is_string() && lost["format"] == "not_judged", "{lost}");
    }

    // With another server of the same model the rest is measured, and nothing twice.
    let daemon = server();
    let again = arguments(&pool(&daemon));
    let again = done(&again.iter().map(String::as_str).collect::<Vec<_>>());
    let due = format!("{} of 400 runs to do", 400 - measured);
    assert!(again.code == 0 && again.stderr.contains(&due), "{}", again.stderr);

    let all = records(&out);
    assert_eq!(all.iter().filter(|record| record["status"] == "measured").count(), 400);
}

/// Two systems that differ in what a request can say.
const RUNS: &str = r#"
[study]
name = "runs"
[ask]
tasks = ["tower-of-hanoi", "bubble-sort"]
difficulties = ["easy"]
instances = 3
[[system]]
name = "four"
[[system]]
name = "one"
set = { "run.fanout" = 1 }
"#;

#[test]
fn daemons_share_the_runs_of_a_study() {
    let daemons = [Daemon::start(&[]), Daemon::start(&[])];
    let urls = daemons.each_ref().map(|daemon| daemon.url(""));
    let (folder, path) = file("runs.toml", RUNS);
    let out = folder.path().join("runs.jsonl");

    let run = ["study", "run", shown(&path), "--records", shown(&out)];
    let ran = done(&[&run[..], &["--url", &urls[0], "--url", &urls[1]]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let records = records(&out);
    assert_eq!(records.len(), 12);

    for record in &records {
        assert!(
            record["status"] == "measured" && record["right"] == true && record["accepted"] == true,
            "{record}"
        );
        // The executor follows the reference.
        assert_eq!(record["steps"], record["reference_steps"], "{record}");
        assert_eq!(
            (&record["semantic"], &record["result"]),
            (&"passed".into(), &"passed".into()),
            "{record}"
        );
        assert_eq!(
            record["trajectories"],
            if record["system"] == "one" { 1 } else { 4 },
            "{record}"
        );
        assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    }

    for url in &urls {
        assert!(
            records.iter().any(|record| record["machine"] == format!("daemon at {url}")),
            "{url} did nothing"
        );
    }

    // The first part of the study is there already.
    let again = done(
        &[&run[..], &["--url", &urls[0], "--instances", "1", "--task", "bubble-sort"]].concat(),
    );
    assert!(again.stderr.contains("0 of 2 runs to do"), "{}", again.stderr);
}

#[test]
fn values_of_a_report_lead_to_their_runs() {
    let daemon = Daemon::start(&[]);
    let url = daemon.url("");
    // A figure whose values are all the same is not drawn.
    let study = RUNS.replace("\"run.fanout\" = 1", "\"run.fanout\" = 1, \"run.budget.steps\" = 3");
    let (folder, path) = file("runs.toml", &study);
    let [records, out] = ["runs.jsonl", "report"].map(|name| folder.path().join(name));
    let ran =
        done(&["study", "run", shown(&path), "--records", shown(&records), "--url", url.as_str()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let report = ["study", "report", shown(&records), "--out", shown(&out), "--studio"];
    let bad = done(&[&report[..], &["javascript:alert(1)"]].concat());
    bad.refused(&["--studio", "give the address"]);
    let made = done(&[&report[..], &[url.as_str()]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);

    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let begin = format!("<a href=\"{url}/studio/runs?");
    let mut links: Vec<String> = page
        .split(&begin)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
        .collect();
    links.sort();
    links.dedup();
    // Each system, and each of the two tasks of each.
    assert_eq!(links.len(), 6, "{links:?}");
    for link in links {
        let (tasks, fanout) =
            (if link.contains("task=") { 1 } else { 2 }, if link.contains("four") { 4 } else { 1 });
        // Labels are found once the runs are noted.
        let count = |list: &Value| list["runs"].as_array().map_or(0, Vec::len);
        let listed = daemon.until(&format!("/v1/runs?{link}"), |list| count(list) == 3 * tasks);
        let runs = listed["runs"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["trajectories"] == fanout), "{link}: {listed}");
    }
}

/// Starts a study on a daemon that is killed after the first records.
fn killed_in_the_middle(
    study: &Path,
    out: &Path,
    daemon: Daemon,
    more: &[&str],
) -> (std::process::Child, Arc<Home>) {
    let url = daemon.url("");
    let run =
        ["study", "run", shown(study), "--records", shown(out), "--url", &url, "--concurrent", "4"];
    let mut child = prime(&[&run[..], more].concat()).spawn().expect("the binary starts");

    while !std::fs::read_to_string(out).is_ok_and(|text| text.lines().count() > 2) {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "the study ended before the daemon did"
        );
        std::thread::yield_now();
    }

    (child, daemon.kill())
}

#[test]
fn runs_of_a_daemon_that_dies_are_not_measured_and_never_wrong() {
    let (folder, path) = file("runs.toml", &RUNS.replace("instances = 3", "instances = 100"));
    let out = folder.path().join("runs.jsonl");
    let (child, _home) =
        killed_in_the_middle(&path, &out, Daemon::start(&[]), &["--patience", "1"]);
    let ended = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("were not measured, and are due at the next"), "{said}");

    let so_far = records(&out);
    let (measured, lost): (Vec<_>, Vec<_>) =
        so_far.iter().partition(|record| record["status"] == "measured");

    assert!(
        measured.len() > 2 && !lost.is_empty() && so_far.len() == 400,
        "{} of {}",
        measured.len(),
        so_far.len()
    );
    assert!(measured.iter().all(|record| record["right"] == true));
    assert!(
        lost.iter()
            .all(|record| record["status"] == "not_measured" && record["format"] == "not_judged")
    );
    assert!(
        lost.iter()
            .all(|record| record["failure"].as_str().is_some_and(|why| why.starts_with("http://")))
    );

    // Another daemon measures the rest, and nothing twice.
    let daemon = Daemon::start(&[]);
    let again =
        done(&["study", "run", shown(&path), "--records", shown(&out), "--url", &daemon.url("")]);
    let due = format!("{} of 400 runs to do", lost.len());
    assert!(again.code == 0 && again.stderr.contains(&due), "{}", again.stderr);

    let all = records(&out);
    assert_eq!(all.iter().filter(|record| record["status"] == "measured").count(), 400);
}

#[test]
fn runs_wait_for_a_daemon_that_is_killed_and_started_again() {
    let (folder, path) = file("runs.toml", &RUNS.replace("instances = 3", "instances = 100"));
    let out = folder.path().join("runs.jsonl");
    let daemon = Daemon::start(&[]);
    let bind = format!("server.bind={}", daemon.address);
    let (child, home) = killed_in_the_middle(&path, &out, daemon, &[]);

    let _daemon = Daemon::start_in(&home, &[&bind]);
    let ended = child.wait_with_output().expect("ended");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));

    let records = records(&out);
    let keys: BTreeSet<_> = records
        .iter()
        .map(|it| format!("{} {} {}", it["system"], it["task"], it["index"]))
        .collect();

    assert_eq!((records.len(), keys.len()), (400, 400));
    assert!(records.iter().all(|record| record["status"] == "measured" && record["right"] == true));
}

#[test]
fn daemons_that_cannot_do_it_are_named() {
    let daemon = Daemon::start(&[]);
    let (folder, path) = file("runs.toml", &RUNS.replace("run.fanout", "run.stuck_after"));
    let out = folder.path().join("runs.jsonl");
    let run = |more: &[&str]| {
        done(&[&["study", "run", shown(&path), "--records", shown(&out)], more].concat())
    };
    run(&["--url", &daemon.url("")]).refused(&[
        "system `one`",
        "`run.stuck_after`",
        "without --url",
    ]);

    run(&["--url", "ftp://x"]).refused(&["--url ftp://x", "http://HOST:PORT"]);
    let address = daemon.url("");
    drop(daemon);
    std::fs::write(&path, RUNS).expect("written");
    run(&["--url", &address]).refused(&[&address, "prime-agents serve"]);
    run(&["--task", "n-queens"]).refused(&["--task n-queens", "tower-of-hanoi"]);
}
