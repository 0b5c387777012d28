//! `/v1/verify` under requests that are made to cost much.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::figures::cpu_seconds;
use crate::raw::{Raw, get, post};

/// An answer to the puzzle with these discs, whose reference takes 2^n - 1 steps.
fn hanoi(discs: u32, from: u32, to: u32) -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": discs, "from": from, "to": to}, "answer": {}})
}

#[test]
fn an_instance_that_is_named_ten_thousand_times_costs_once() {
    let daemon = Daemon::start(&[]);
    let before = cpu_seconds(daemon.pid());

    let answer = daemon
        .post_text("/v1/verify", &json!({"batch": vec![hanoi(21, 0, 2); 10_000]}).to_string());
    let results = answer.body["results"].as_array().expect("results");
    assert_eq!((answer.status, results.len()), (200, 10_000));

    let kinds: BTreeSet<_> = results.iter().map(ToString::to_string).collect();
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    assert_eq!(results[0], json!({"right": false, "judged_by": "reference"}));

    // A reference takes 50 ms: computed each time, they would take 500 s.
    let spent = cpu_seconds(daemon.pid()) - before;
    assert!(spent < 100.0, "{spent} s");
}

#[test]
fn the_work_of_a_request_is_limited_and_what_is_left_says_so() {
    let daemon = Daemon::start(&[]);
    let pegs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    let batch: Vec<_> =
        [21, 20, 19].into_iter().flat_map(|n| pegs.map(|(from, to)| hanoi(n, from, to))).collect();

    let answer = daemon.post_text("/v1/verify", &json!({ "batch": batch }).to_string());
    let results = answer.body["results"].as_array().expect("results");
    assert_eq!((answer.status, results.len()), (200, batch.len()));
    assert_eq!(results[0], json!({"right": false, "judged_by": "reference"}));

    let last = &results[batch.len() - 1]["error"];
    assert_eq!(last["field"], Value::Null);
    assert!(
        last["message"]
            .as_str()
            .is_some_and(|message| message.contains("send the rest in another")),
        "{last}"
    );

    let one = daemon.post_text("/v1/verify", &hanoi(21, 0, 2).to_string());
    assert_eq!((one.status, &one.body["right"]), (200, &json!(false)));
}

#[test]
fn requests_of_clients_that_left_do_not_go_on() {
    let daemon = Daemon::start(&[]);
    // Each request would take minutes: its inputs all differ, and each takes milliseconds.
    let batch: Vec<_> = (0..10_000)
        .map(|seed| {
            json!({
                "task": "sudoku", "difficulty": "hard", "index": 0, "base_seed": seed, "answer": {},
            })
        })
        .collect();

    let request = post("/v1/verify", &json!({ "batch": batch }).to_string());
    for _ in 0..200 {
        let mut client = Raw::connect(&daemon.address);
        client.send(&request);
        // Another request on a connection of its own: the first has arrived by then, and its client
        // leaves.
        assert_eq!(Raw::connect(&daemon.address).ask(&get("/livez")).status, 200);
    }

    // The daemon may not have noticed yet that the last ones left: until then the queue is full,
    // which is not a failure.
    let ask = || daemon.post_text("/v1/verify", &hanoi(3, 0, 2).to_string());
    let answer = std::iter::repeat_with(ask)
        .find(|answer| answer.status != 429)
        .expect("it is asked until it is answered");
    assert_eq!(answer.status, 200, "nothing is in its way: {answer:?}");
}
