//! Long runs: a million steps, an interrupt, and a model through llama.cpp.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::binary::{Done, REFERENCE, file, prime, prime_signalled, shown};

/// Longest wait for anything that must happen; far above what it takes, because the machine may be
/// busy.
const PATIENCE: Duration = Duration::from_mins(5);

/// A number of `/proc/<pid>/status`, in its unit; `None` when the process is over.
fn status_of(child: &Child, field: &str, radix: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    u64::from_str_radix(line.split_whitespace().next()?, radix).ok()
}

#[test]
fn a_million_steps_take_seconds_and_little_memory() {
    let (_folder, path) = file("input.json", r#"{"n": 20, "from": 0, "to": 2}"#);
    let arguments = [
        "run",
        "tower-of-hanoi",
        "--output",
        "json",
        "--input",
        shown(&path),
        "--set",
        "run.fanout=1",
    ];

    let started = Instant::now();
    let mut child = prime_signalled(&[&arguments[..], &REFERENCE].concat()).spawn().unwrap();
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < PATIENCE, "not in time");
        // The kernel keeps the peak itself: looking now and then misses only what comes after the
        // last look.
        peak_kib = status_of(&child, "VmHWM", 10).unwrap_or(peak_kib);
        std::thread::yield_now();
    }

    let result = Done::from(child.wait_with_output().unwrap()).json(0);
    assert_eq!(
        (&result["steps"], &result["verified"], &result["correct"]),
        (&json!(1_048_575), &json!(true), &json!(true))
    );
    assert!((1..200_000).contains(&peak_kib), "{peak_kib} KiB");
}

#[test]
fn an_interrupt_ends_a_run_cleanly_with_what_is_known() {
    let (folder, path) = file("input.json", r#"{"n": 30, "from": 0, "to": 2}"#);
    let trace = folder.path().join("trace.jsonl");
    let arguments = [
        "run",
        "tower-of-hanoi",
        "--output",
        "json",
        "--input",
        shown(&path),
        "--trace",
        shown(&trace),
    ];

    let limits = ["--set", "run.budget.steps=1000000000000"];
    let child = prime_signalled(&[&arguments[..], &limits, &REFERENCE].concat()).spawn().unwrap();
    let interrupt = 1 << (Signal::INT.as_raw() - 1);
    let started = Instant::now();

    // Under way: steps are written, and the signal has a handler.
    while std::fs::metadata(&trace).is_ok_and(|file| file.len() == 0)
        || !trace.exists()
        || status_of(&child, "SigCgt", 16).is_none_or(|caught| caught & interrupt == 0)
    {
        assert!(started.elapsed() < PATIENCE, "not under way in time");
        std::thread::yield_now();
    }

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let result = Done::from(child.wait_with_output().unwrap()).json(130);
    assert_eq!((&result["outcome"], &result["verified"]), (&json!("cancelled"), &json!(false)));
    assert!(result["proposals"].as_u64().unwrap() > 0);

    let text = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.contains(r#""event":"step""#)).count() as u64,
        result["proposals"]
    );
    assert!(text.ends_with("\"verified\":false}\n"), "the trace is whole");

    let steps = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let committed = steps
        .filter(|step| step["decision"] == "proceed")
        .map(|step| step["depth"].as_u64().unwrap() + 1);
    assert_eq!(
        committed.max(),
        result["steps"].as_u64(),
        "without an answer, of the deepest trajectory"
    );
}

#[cfg(feature = "llama")]
#[test]
fn a_model_of_random_weights_ends_within_its_budget() {
    use prime_engine_testing::TinyModel;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    TinyModel::default().write(&path).unwrap();
    let model = format!("engines.tiny.model={}", path.display());

    let arguments = ["run", "dfa-simulation", "--output", "json", "--set", &model];
    let limits = [
        "run.budget.steps=200",
        "run.fanout=4",
        "agents.executor.max_tokens=40",
        "engines.tiny.isolation=process",
    ];
    let sets: Vec<_> = limits.into_iter().flat_map(|limit| ["--set", limit]).collect();

    let done = Done::from(prime(&[&arguments[..], &sets].concat()).output().unwrap());
    assert!(done.code == 0 || done.code == 1, "{}", done.stderr);

    let result = done.json(done.code);
    assert_eq!(result["verified"] == json!(true), done.code == 0);
    assert!(result["failure"].is_null(), "{result}");
    assert!((1..=200).contains(&result["proposals"].as_u64().unwrap()), "{result}");
    assert!(
        result["tokens"]["prompt"].as_u64().unwrap() > 0
            && result["tokens"]["completion"].as_u64().unwrap() > 0
    );
    assert_eq!(result["agents"]["executor"], "llama");
    assert_eq!(result["notes"], json!([]), "a model and invariants need no remark");
}
