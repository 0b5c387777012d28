//! Tasks that are WebAssembly modules, end to end: on the command line and in a daemon.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::binary::{Done, run};
use crate::daemon::{Daemon, Home};

/// A module that counts to one: a request of 20 bytes asks for the start of the input `{}`; a
/// longer one is a step, for which `step` leaves the address and the length of the answer.
pub fn module(step: &str) -> (tempfile::TempDir, PathBuf) {
    const HELLO: &str = r#"{"prime":1,"task":{"name":"one","statement":"Count to one."}}"#;
    const START: &str = r#"{"id":1,"state":0,"choices":["go"]}"#;
    const DONE: &str = r#"{"id":1,"state":1,"done":true}"#;
    let data = |text: &str| text.replace('"', "\\22");
    let at = |address: u64, text: &str| (address << 32) | text.len() as u64;
    let text = format!(
        r#"(module
            (memory (export "memory") 2)
            (data (i32.const 0) "{}") (data (i32.const 256) "{}") (data (i32.const 512) "{}")
            (func (export "alloc") (param i32) (result i32) (i32.const 65536))
            (func (export "answer") (param $at i32) (param $len i32) (result i64)
                (if (i32.eq (i32.load8_u offset=2 (local.get $at)) (i32.const 112))
                    (then (return (i64.const {}))))
                (if (i32.eq (local.get $len) (i32.const 20)) (then (return (i64.const {}))))
                {}))"#,
        data(HELLO),
        data(START),
        data(DONE),
        at(0, HELLO),
        at(256, START),
        step.replace("DONE", &format!("(i64.const {})", at(512, DONE))),
    );

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("one.wasm");
    std::fs::write(&path, wat::parse_str(text).expect("WebAssembly text")).expect("written");
    (folder, path)
}

fn run_module(step: &str) -> Done {
    let (_folder, path) = module(step);
    let path = path.to_str().expect("a plain name");
    let uniform = "agents.executor.implementation=uniform";
    run(&[&["--task-program", path, "--input", "{}", "--set", uniform]])
}

#[test]
fn a_module_is_run_without_a_daemon() {
    let result = run_module("DONE").json(0);
    assert_eq!(
        (&result["task"], &result["answer"], &result["verified"]),
        (&json!("one"), &json!(1), &json!(true))
    );
}

#[test]
fn a_module_that_loops_or_traps_fails_its_run_with_the_reason() {
    for (step, part) in [
        ("(loop $l (br $l)) (i64.const 0)", "used up the fuel of an answer"),
        ("unreachable", "it trapped"),
        ("(i64.const 562945658454026)", "outside of its memory"),
    ] {
        let result = run_module(step).json(1);
        let failure = result["failure"].to_string();
        assert!(failure.contains(part), "{part:?} is missing in {result}");
        assert_eq!(result["verified"], json!(false));
    }
}

#[test]
fn a_daemon_runs_a_module_of_its_configuration_beside_others() {
    let (_folder, path) = module("DONE");
    let (_other, loops) = module("(loop $l (br $l)) (i64.const 0)");
    let set = |name: &str, path: &PathBuf| {
        format!("tasks.{name}.module=\"{}\"", path.to_str().expect("a plain name"))
    };
    let daemon = Daemon::start_in(
        &Home::new(),
        &[
            "agents.executor.implementation=uniform",
            &set("one", &path),
            &set("loops", &loops),
            "tasks.loops.fuel_max=1000000",
        ],
    );

    let request = |task: &str| json!({"task": task, "input": {}, "fanout": 1, "max_rounds": 1});
    let hung = daemon.submitted(&request("loops"));
    let run = daemon.submitted(&request("one"));
    let record = daemon.finished(&run);
    assert_eq!((&record["status"], &record["answer"]), (&json!("verified"), &json!(1)));
    let record: Value = daemon.finished(&hung);
    let failure = record["failure"].to_string();
    assert!(failure.contains("the fuel of an answer (1000000 units)"), "{record}");

    let listed = daemon.get("/v1/tasks/one").body;
    assert_eq!((&listed["title"], &listed["category"]), (&json!("one"), &json!("own")));
    crate::binary::done(&[
        "run",
        "one",
        "--set",
        "tasks.one.module=x",
        "--set",
        "tasks.one.command=[\"y\"]",
    ])
    .refused(&["`tasks.one` has both a `command` and a `module`"]);
    let missing = ["run", "one", "--input", "{}", "--set", "tasks.one.module=/nothing.wasm"];
    crate::binary::done(&missing).refused(&["/nothing.wasm cannot be read"]);
}
