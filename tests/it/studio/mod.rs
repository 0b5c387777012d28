//! The studio's files, and the routes that show a run step by step: everything that they say is
//! compared with the run's trace.

mod forks;
mod page;
mod steps;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::daemon::Daemon;

/// An executor that makes mistakes, so that steps are retried, rejected and popped.
const ERRING: [&str; 3] = [
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.4",
    "run.tau_soft=0.2",
];

fn erring() -> Value {
    json!({"task": "bubble-sort", "index": 3, "fanout": 3, "max_rounds": 1, "seed": 5})
}

/// The lines of the run's trace, each with the state before.
fn trace(daemon: &Daemon, run: &str) -> Vec<Value> {
    daemon
        .text(&format!("{run}/trace"))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The steps of each trajectory, from the trace.
fn by_trajectory(trace: &[Value]) -> BTreeMap<String, Vec<&Value>> {
    let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for line in trace.iter().filter(|line| line["event"] == "step") {
        found.entry(format!("{}.{}", line["round"], line["trajectory"])).or_default().push(line);
    }
    found
}
