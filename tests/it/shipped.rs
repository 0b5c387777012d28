//! The model that is shipped, through the whole binary with the shipped configuration.

use serde_json::Value;

use crate::binary::{Done, prime};

/// Runs a task with the defaults, as a user in a checkout does.
fn solved(task: &str, index: &str) -> Value {
    let mut command = prime(&["run", task, "--index", index, "--output", "json"]);
    let done: Done = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("the binary starts").into();
    done.json(0)
}

#[test]
fn it_solves_instances_of_the_benchmark_and_they_are_verified() {
    for (task, index) in [("n-queens", "0"), ("long-division", "1"), ("tower-of-hanoi", "2")] {
        let result = solved(task, index);
        assert_eq!(result["verified"], true, "{result}");
        assert_eq!(result["correct"], true, "{result}");
        assert_eq!(result["agents"]["executor"], "llama");
        assert!(result["tokens"]["completion"].as_u64().is_some_and(|tokens| tokens > 0), "{result}");
    }
}
