//! Approvals through repeated kills of one daemon.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::approvals::{decide, events, waiting};
use crate::daemon::{Daemon, Home};
use crate::figures::from_env;

const REFERENCE: [&str; 1] = ["agents.executor.implementation=reference"];
/// Steps of a run, each of which waits.
const STEPS: usize = 5;

/// A run of one trajectory: an end by another one would make a decision void.
fn run(number: u64) -> Value {
    json!({
        "task": "n-queens", "input": {"n": STEPS, "order": [0, 1, 2, 3, 4]},
        "fanout": 1, "max_rounds": 1, "seed": number, "approve": "every step",
    })
}

/// What was decided and acknowledged: run, number, and the line.
type Decided = BTreeMap<(String, u64), String>;

/// Accepts what waits now, up to `most` steps, and notes each acknowledgement.
fn accept_waiting(daemon: &Daemon, most: usize, decided: &mut Decided) {
    for (run, number, line) in waiting(daemon).into_iter().take(most) {
        let answer = decide(daemon, &run, number, &json!({"verdict": "accept"}));
        // Another one may have been carried out since the list was read, which ends a run.
        assert!([200, 409].contains(&answer.status), "{answer:?}");
        if answer.status == 200 {
            let before = decided.insert((run, number), line.clone());
            assert!(before.is_none_or(|before| before == line), "a number means one line");
        }
    }
}

#[test]
fn no_kill_loses_or_doubles_a_decision() {
    let kills = from_env("PRIME_CHAOS_KILLS", 12);
    let home = Home::new();
    let (mut runs, mut decided) = (Vec::new(), Decided::new());
    for kill in 0..kills {
        let daemon = Daemon::start_in(&home, &REFERENCE);
        runs.push(daemon.submitted(&run(kill)));
        // Killed while a run starts, when a step has come to wait, and at once after decisions.
        match kill % 4 {
            0 => {}
            1 => drop(daemon.until(&runs[runs.len() - 1], |record| record["status"] == "waiting")),
            2 => accept_waiting(&daemon, 1, &mut decided),
            _ => accept_waiting(&daemon, usize::MAX, &mut decided),
        }
        drop(daemon.kill());
    }
    let through_kills = decided.len();

    let daemon = Daemon::start_in(&home, &REFERENCE);
    for run in &runs {
        let is_over = |record: &Value| record["status"] == "verified";
        while !is_over(
            &daemon.until(run, |record| record["status"] == "waiting" || is_over(record)),
        ) {
            accept_waiting(&daemon, usize::MAX, &mut decided);
        }
    }
    eprintln!("{kills} kills, {through_kills} decisions before the last");

    for run in &runs {
        let mine: BTreeMap<_, _> =
            decided.iter().filter(|((of, _), _)| of == run).map(|((_, n), l)| (*n, l)).collect();
        let mut carried_out = BTreeMap::new();
        for step in events(&daemon, run, "step") {
            let approval = &step["approval"];
            assert_eq!(approval["verdict"], "accept", "{step}");
            let line = step["action"].as_str().unwrap().to_owned();
            let number = approval["number"].as_u64().unwrap();
            assert_eq!(carried_out.insert(number, line), None, "{run}: number {number} twice");
        }
        for (number, line) in mine {
            assert_eq!(carried_out.get(&number), Some(line), "{run}: decision {number} was lost");
        }
    }
}
