//! `run.locate`: where the fault of a refuted trajectory lies, in the trace, on the terminal, and
//! from a daemon.

use serde_json::{Value, json};

use crate::binary::{done, file, shown};
use crate::daemon::{Daemon, server_sent};

/// A verifier that sees wrong steps at the end alone, and an executor that makes some.
const BLIND: [&str; 6] = [
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.05",
    "agents.verifier.kinds=[\"format\", \"terminal\"]",
    "run.locate=strict",
    "run.fanout=1",
    "run.max_rounds=1",
];

/// For each step with a fault that was found: the depth of the fault, and that of the next step.
fn returns(steps: &[Value]) -> Vec<(u64, u64)> {
    let fault = |pair: &[Value]| {
        let located = pair[0].get("located").filter(|found| found.get("fault").is_some())?;
        Some((located["clean"].as_u64()?, pair[1]["depth"].as_u64()?))
    };
    steps.windows(2).filter_map(fault).collect()
}

fn steps_of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let events = lines.map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    events.filter(|event| event["event"] == "step").collect()
}

#[test]
fn a_run_goes_back_to_the_fault_and_says_where_it_was() {
    let (_folder, trace) = file("trace.jsonl", "");
    let sets = BLIND.iter().flat_map(|set| ["--set", set]);
    let mut arguments = vec!["run", "union-find", "--index", "5", "--trace", shown(&trace)];
    arguments.extend(sets);
    let run = done(&arguments);

    let text = std::fs::read_to_string(&trace).expect("written");
    let returned = returns(&steps_of(text.lines()));
    assert!(!returned.is_empty(), "{}", run.stderr);
    for (fault, next) in &returned {
        assert_eq!(fault, next);
    }

    let said = format!("and found the fault at depth {}: `", returned[0].0);
    assert!(run.stderr.contains("trajectory 0 of round 1 is refuted: the locator judged "));
    assert!(run.stderr.contains(&said), "{}", run.stderr);
    // The kinds are not sound: no promise.
    assert!(run.stdout.contains("unrefuted") && run.code == 1, "{}", run.stdout);
}

#[test]
fn a_daemon_explains_where_the_fault_was() {
    let daemon = Daemon::start(&BLIND);
    let run = daemon.submitted(&json!({"task": "union-find", "index": 5}));
    let record = daemon.finished(&run);
    assert_eq!(record["agents"]["locator"], "strict", "{record}");

    let events = server_sent(&daemon.text(&format!("{run}/events")));
    let lines = events.iter().map(|(_, _, line)| line.as_str());
    let returned = returns(&steps_of(lines));
    assert!(!returned.is_empty());
    assert!(returned.iter().all(|(fault, next)| fault == next), "{returned:?}");

    let found = events.iter().find(|(_, _, line)| line.contains(r#""fault":{"#)).expect("one");
    let step = daemon.get(&format!("{run}/steps/{}", found.0)).body;
    let then = step["then"]["text"].as_str().expect("a text");
    let start = "The steps before were all found clean, so the locator `strict` judged ";
    let (fault, _) = returned[0];
    assert!(then.starts_with(start), "{then}");
    assert!(then.contains(&format!("found the fault at depth {fault}: `")), "{then}");
    assert!(then.contains(&format!("The search went back to depth {fault}.")), "{then}");
}

#[test]
fn a_locator_that_cannot_help_is_refused() {
    for (name, parts) in [
        ("strictt", &["run.locate", "did you mean `strict`"][..]),
        ("uniform", &["an agent of the role executor", "only a verifier"]),
        ("rules", &["is the verifier itself", "cannot find more"]),
    ] {
        let set = format!("run.locate={name}");
        done(&["run", "bubble-sort", "--set", &set]).refused(parts);
    }
}
