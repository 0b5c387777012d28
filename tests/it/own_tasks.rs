//! Tasks of one's own: programs in the role `task`, through the real executable.
#![allow(clippy::disallowed_methods, reason = "these tests write the programs of other processes")]

mod ends;
mod measured;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::binary::{Done, file, prime, run, shown};
use crate::daemon::{Daemon, Home};

const INPUT: &str = r#"{"A": 3, "B": 5, "goal": 4}"#;
const UNIFORM: [&str; 2] = ["--set", "agents.executor.implementation=uniform"];

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jugs").join(name);
    path.to_str().expect("plain").to_owned()
}

/// A command with the search path, in which Python is found.
fn with_path(mut command: Command) -> Command {
    command.env("PATH", std::env::var("PATH").expect("a path"));
    command
}

/// `run --task-program` with this program, as JSON.
fn run_program(program: &str, input: &str, more: &[&str]) -> Done {
    let command = format!("python3 -B {program}");
    let arguments = [
        &["run", "--output", "json", "--task-program", &command, "--input", input][..],
        &UNIFORM,
        more,
    ]
    .concat();
    with_path(prime(&arguments)).output().expect("the binary starts").into()
}

/// A program that answers as these definitions of `start` and `step` say; `ask` is the request.
fn program(definitions: &str) -> (tempfile::TempDir, String) {
    let code = format!(
        r#"
import json, os, sys, time
TASK = {{"name": "odd", "statement": "Do it."}}
def start(ask):
    return {{"state": 0, "choices": ["go"]}}
def step(ask):
    return {{"state": ask["state"] + 1, "choices": ["go"], "done": ask["state"] == 2}}
{definitions}
sys.stdin.readline()
print(json.dumps({{"prime": 1, "task": TASK}}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    answer = step(ask) if "line" in ask else start(ask)
    text = answer if isinstance(answer, str) else json.dumps({{"id": ask["id"], **answer}})
    print(text, flush=True)
"#
    );
    let (folder, path) = file("odd.py", &code);
    let path = shown(&path).to_owned();
    (folder, path)
}

/// A run of a program, which ends by an agent's failure; the reason.
fn failure(definitions: &str, more: &[&str]) -> String {
    let (_folder, path) = program(definitions);
    let result = run_program(
        &path,
        "{}",
        &[&["--set", "run.fanout=1", "--set", "run.max_rounds=1"], more].concat(),
    )
    .json(1);
    assert_eq!((&result["outcome"], &result["answer"]), (&json!("agent_failed"), &Value::Null));
    result["failure"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_program_is_run_without_a_daemon() {
    let result = run_program(&example("jugs.py"), INPUT, &[]).json(0);
    assert_eq!((&result["task"], &result["verified"]), (&json!("jugs"), &json!(true)));
    assert_eq!(result["answer"], json!({"litres": 4}));
    assert_eq!(
        (&result["verification"]["assurance"], &result["verification"]["kinds"]),
        (&json!("verified"), &json!(["format", "invariant"]))
    );
}

#[test]
fn a_program_may_solve_what_another_defines() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.jsonl");
    let executor =
        format!(r#"agents.executor.program.command=["python3", "{}"]"#, example("executor.py"));
    let more = [
        "--trace",
        shown(&trace),
        "--set",
        "agents.executor.implementation=process",
        "--set",
        &executor,
        "--set",
        "run.fanout=1",
    ];
    let result = run_program(&example("jugs.py"), INPUT, &more).json(0);
    assert_eq!((&result["answer"], &result["verified"]), (&json!({"litres": 4}), &json!(true)));

    // Filling a and pouring it into b, by hand: 3|0, 0|3, 3|3, 1|5, 1|0, 0|1, 3|1, 0|4.
    let text = std::fs::read_to_string(&trace).expect("a trace");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let actions: Vec<&Value> = lines
        .iter()
        .filter(|line| line["event"] == "step" && line["decision"] == "proceed")
        .map(|line| &line["action"])
        .collect();
    let expected =
        ["fill a", "pour a b", "fill a", "pour a b", "empty b", "pour a b", "fill a", "pour a b"];
    assert_eq!(actions, expected);
}

#[test]
fn what_breaks_a_constraint_is_rejected_with_the_programs_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.jsonl");
    let lines = r#"agents.executor.lines=["empty a", "drink", "fill b", "pour b a", "empty a", "pour b a", "fill b", "pour b a"]"#;
    let more = [
        "--trace",
        shown(&trace),
        "--set",
        "agents.executor.implementation=replay",
        "--set",
        lines,
        "--set",
        "run.fanout=1",
    ];
    let result = run_program(&example("jugs.py"), INPUT, &more).json(0);
    assert_eq!((&result["verified"], &result["steps"]), (&json!(true), &json!(6)));

    let text = std::fs::read_to_string(&trace).expect("a trace");
    let steps: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line["event"] == "step")
        .collect();
    assert_eq!(
        (&steps[0]["violations"], &steps[0]["feedback"]),
        (&json!(["repeat"]), &json!("repeat: 0 and 0 litres were there before"))
    );
    assert_eq!(
        (&steps[1]["violations"], &steps[1]["applicable"]),
        (&json!(["format"]), &json!(false))
    );
    assert!(
        steps[1]["feedback"]
            .as_str()
            .is_some_and(|text| text.starts_with("format: not one of fill a")),
        "{}",
        steps[1]
    );
}

#[test]
fn an_input_that_the_program_refuses_is_refused() {
    let done = run_program(&example("jugs.py"), r#"{"A": 2, "B": 4, "goal": 3}"#, &[]);
    done.refused(&["--input", "jugs: 3 litres cannot be measured with 2 and 4"]);
}

#[test]
fn a_program_that_contradicts_itself_ends_its_run_by_name() {
    let random = "import random\ndef start(ask):\n    return {'state': random.random()}\n";
    let (_folder, path) = program(random);
    run_program(&path, "{}", &[]).refused(&["asked twice for the start"]);

    // Another state for the same step: noticed at the last step, which is always asked twice.
    let lies = "count = 0\ndef step(ask):\n    global count\n    count += 1\n    \
                return {'state': ask['state'] + 1, 'choices': ['go'], 'done': ask['state'] == 2, 'view': str(count)}\n";
    let reason = failure(lies, &[]);
    assert!(reason.contains("answered differently when asked twice about `go`"), "{reason}");

    let refuses = "def step(ask):\n    return {'refused': 'no'}\n";
    let reason = failure(refuses, &[]);
    assert!(reason.contains("refused (no), but listed among the choices, `go`"), "{reason}");
}

#[test]
fn bad_answers_are_named() {
    for (definitions, part) in [
        ("def step(ask):\n    return {'state': float('nan')}\n", "instead of an answer with"),
        ("def step(ask):\n    return 'garbage'\n", "instead of an answer with"),
        (
            "def step(ask):\n    return {'state': 1, 'violations': [{'name': 'x', 'severity': 'fatal'}]}\n",
            "unknown variant `fatal`, expected one of `critical`, `major`, `minor`",
        ),
        (
            "def step(ask):\n    return {'state': 1, 'violations': [{'name': 'x'}]}\n",
            "the violation `x` has no `severity`",
        ),
        (
            "def step(ask):\n    return {'state': 1, 'violations': [{'name': 'a\\u202eb', 'severity': 'minor'}]}\n",
            "has the character \\u{202e}",
        ),
        ("def step(ask):\n    return {'state': 2 ** 70}\n", "would lose digits"),
        ("def step(ask):\n    return {'state': 'x' * 2_000_000}\n", "line_bytes_max"),
        (
            "def start(ask):\n    return {'state': '', 'choices': ['go'], 'steps_max': 1000}\n\
             def step(ask):\n    return {'state': 'x' * 1_000_000, 'choices': ['go']}\n",
            "the states of a trajectory take more than 256 MiB",
        ),
        ("def step(ask):\n    return {'state': 1, 'answer': 2}\n", "is not `done`"),
        ("def step(ask):\n    return {'stat': 1}\n", "unknown field `stat`"),
        ("def step(ask):\n    sys.exit(3)\n", "exit"),
        ("def step(ask):\n    return {'error': 'no water', 'retry': False}\n", "it said: no water"),
    ] {
        let restarts = ["--set", "run.budget.wall_ms=120000"];
        let reason = failure(definitions, &restarts);
        assert!(reason.contains("task `task`: ") && reason.contains(part), "{part:?}: {reason}");
    }
}

#[test]
fn a_declaration_that_cannot_be_used_is_named() {
    for (task, parts) in [
        ("{'name': 'Odd', 'statement': 'x'}", &["`name` is \"Odd\"", "lower-case"][..]),
        ("{'name': 'odd', 'statement': ' '}", &["`statement` is empty"]),
        ("{'name': 'n-queens', 'statement': 'x'}", &["`n-queens` is that of a built-in task"]),
        (
            "{'name': 'odd', 'statement': 'x', 'actions': ['<jug>']}",
            &["actions[0]", "<jug> is not a field"],
        ),
        ("{'name': 'odd', 'statement': 'x', 'colour': 1}", &["unknown field `colour`"]),
        ("{'name': 'odd', 'statement': 'a\\u001b[2Jb'}", &["has the character \\u{1b}"]),
    ] {
        let (_folder, path) = program(&format!("TASK = {task}\n"));
        run_program(&path, "{}", &[]).refused(parts);
    }

    // An agent's program is no task.
    let done = run_program(&example("executor.py"), "{}", &[]);
    done.refused(&["without its `task`"]);
}

#[test]
fn names_outside_ascii_and_states_without_choices_are_all_right() {
    let definitions = "TASK = {'name': 'odd', 'title': 'Größe', 'statement': '数を数える', 'constraints': [{'name': 'größer', 'severity': 'minor'}]}\n\
                       def start(ask):\n    return {'state': {'größe': 0}}\n\
                       def step(ask):\n    at = ask['state']['größe'] + 1\n    return {'state': {'größe': at}, 'done': at == 2}\n";
    let (_folder, path) = program(definitions);
    let lines = [
        "--set",
        "agents.executor.implementation=replay",
        "--set",
        r#"agents.executor.lines=["größer", "größer"]"#,
    ];
    let result = run_program(&path, "{}", &lines).json(0);
    assert_eq!(result["answer"], json!({"größe": 2}));

    // There is nothing to draw from.
    run_program(&path, "{}", &[]).refused(&["`uniform`", "this task lists none"]);
}

#[test]
fn a_verifier_that_follows_an_algorithm_is_refused_before_the_run() {
    for verifier in ["reference", "scripted"] {
        let set = format!("agents.verifier.implementation={verifier}");
        let follows = format!("the verifier `{verifier}` follows");
        let parts = [follows.as_str(), "choose `rules`"];
        run_program(&example("jugs.py"), INPUT, &["--set", &set]).refused(&parts);

        let command = format!(r#"tasks.jugs.command=["python3", "{}"]"#, example("jugs.py"));
        let daemon = daemon(&Home::new(), &[&command, &set]);
        let input: Value = serde_json::from_str(INPUT).expect("JSON");
        let asked = daemon.submit(&json!({"task": "jugs", "input": input}));
        asked.refused(400, Some("task"), &parts);
    }

    let measured = measured::jugs(&["agents.verifier.implementation=reference"]);
    measured.refused(&["task `jugs`", "the verifier `reference` follows"]);
}

#[test]
fn a_task_of_the_configuration_is_run_by_its_name() {
    let command = format!(r#"tasks.water.command=["python3", "{}"]"#, example("jugs.py"));
    let arguments =
        [&["run", "water", "--output", "json", "--set", &command][..], &UNIFORM].concat();
    let with_input = [&arguments[..], &["--input", INPUT]].concat();
    let result = Done::from(with_path(prime(&with_input)).output().expect("started")).json(0);
    assert_eq!((&result["task"], &result["verified"]), (&json!("water"), &json!(true)));

    Done::from(with_path(prime(&arguments)).output().expect("started")).refused(&["give --input"]);

    let taken = r#"tasks.n-queens.command=["x"]"#;
    run(&[&["water", "--set", taken]]).refused(&["`tasks.n-queens`", "built-in task"]);
    run(&[&["water", "--set", "tasks.water.processes=2"]])
        .refused(&["`tasks.water.command` is empty"]);
}

/// A daemon with the task jugs, whose executor draws.
fn daemon(home: &std::sync::Arc<Home>, sets: &[&str]) -> Daemon {
    let executor = "agents.executor.implementation=uniform";
    let command = Daemon::command(home, &[&[executor], sets].concat());
    Daemon::spawn(with_path(command), home).unwrap_or_else(|log| panic!("it ended: {log}"))
}

#[test]
fn a_daemon_lists_and_runs_the_tasks_of_its_configuration() {
    let command = format!(r#"tasks.jugs.command=["python3", "{}"]"#, example("jugs.py"));
    let daemon = daemon(&Home::new(), &[&command, "tasks.jugs.processes=2"]);

    let tasks = daemon.get("/v1/tasks").body;
    let own: Vec<&Value> = tasks["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|task| task["category"] == "own")
        .collect();
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["slug"], &own[0]["title"]), (&json!("jugs"), &json!("Two jugs")));
    let page = daemon.get("/v1/tasks/jugs").body;
    assert_eq!(page["lines"][1]["line"], "pour a b");
    assert_eq!(page["example"]["input"], json!({"A": 3, "B": 5, "goal": 4}));

    let input: Value = serde_json::from_str(INPUT).expect("JSON");
    let run = daemon.submitted(&json!({"task": "jugs", "input": input}));
    let record = daemon.finished(&run);
    assert_eq!((&record["status"], &record["answer"]), (&json!("verified"), &json!({"litres": 4})));

    // The tools of MCP and the routes of OpenAI's clients know it as well.
    let tool = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = daemon.post_text("/mcp", &call.to_string());
        answer.body["result"]["structuredContent"].clone()
    };
    let listed = tool("list_tasks", json!({"category": "own"}));
    assert_eq!(
        (&listed["tasks"][0]["task"], &listed["tasks"][0]["input"]["goal"], &listed["tasks"][1]),
        (&json!("jugs"), &json!(4), &Value::Null)
    );
    let page = tool("describe_task", json!({"task": "jugs"}));
    assert_eq!((&page["category"], &page["slug"]), (&json!("own"), &json!("jugs")), "{page}");
    let made = tool("make_instance", json!({"task": "jugs", "input": input}));
    assert_eq!(made["state"], json!({"a": 0, "b": 0, "seen": [[0, 0]]}), "{made}");

    let asked = json!({"task": "jugs", "input": input}).to_string();
    let chat = json!({"model": "prime", "messages": [{"role": "user", "content": asked}]});
    let body = daemon.post_text("/v1/chat/completions", &chat.to_string()).body;
    assert_eq!(
        (&body["choices"][0]["message"]["content"], &body["prime"]["verified"]),
        (&json!(r#"{"litres":4}"#), &json!(true)),
        "{body}"
    );

    // What a step did is asked of the program again.
    let trace = daemon.text(&format!("{run}/trace"));
    let first = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let first = first.into_iter().find(|line| line["event"] == "step").expect("a step");
    let detail = daemon.get(&format!("{run}/steps/{}", first["seq"])).body;
    assert_eq!(detail["before"], json!({"a": 0, "b": 0, "seen": [[0, 0]]}), "{detail}");

    daemon.submit(&json!({"task": "jugs", "input": {"A": 2, "B": 2, "goal": 1}})).refused(
        400,
        Some("input"),
        &["cannot be measured"],
    );
    daemon.submit(&json!({"task": "jugs"})).refused(400, Some("input"), &["no instances"]);
    daemon.submit(&json!({"task": "jugs", "input": input, "index": 1})).refused(
        400,
        Some("index"),
        &["give an `input` alone"],
    );
}

/// A list does not wait for a program that hangs, and does not hide it.
#[test]
fn a_task_whose_program_does_not_answer_is_listed_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let hanging = folder.path().join("hanging.py");
    std::fs::write(&hanging, "import signal\nwhile True: signal.pause()\n").expect("writable");
    let sets = [
        format!(r#"tasks.jugs.command=["python3", "{}"]"#, example("jugs.py")),
        format!(r#"tasks.hanging.command=["python3", "{}"]"#, shown(&hanging)),
        r#"tasks.missing.command=["no-such-program-of-this-test"]"#.to_owned(),
    ];
    let daemon = daemon(&Home::new(), &[&sets[0], &sets[1], &sets[2]]);

    let tasks = daemon.get("/v1/tasks").body;
    let reason = |slug: &str| {
        let mut tasks = tasks["tasks"].as_array().expect("a list").iter();
        let task = tasks.find(|task| task["slug"] == slug).expect("listed");
        assert_eq!(task["category"], "own");
        task["unavailable"].as_str().unwrap_or_default().to_owned()
    };
    assert!(reason("hanging").contains("has not answered the handshake"), "{}", reason("hanging"));
    assert!(reason("missing").contains("no-such-program-of-this-test"), "{}", reason("missing"));
}

/// A long task: a counter that goes to its goal by ones.
const COUNTER: &str = "def start(ask):\n    return {'state': 0, 'choices': ['go'], 'steps_max': 1000000}\n\
                       def step(ask):\n    at = ask['state'] + 1\n    \
                       return {'state': at, 'choices': ['go'], 'done': at == ask['input']['to']}\n";

#[test]
fn a_run_survives_a_kill_and_waits_for_a_task_that_is_gone() {
    let (_folder, path) = program(COUNTER);
    let command = format!(r#"tasks.odd.command=["python3", "{path}"]"#);
    let home = Home::new();
    let first = daemon(&home, &[&command]);
    let run = first.submitted(&json!({
        "task": "odd", "input": {"to": 20000}, "fanout": 1, "max_rounds": 1,
    }));
    first.until(&run, |record| record["steps"].as_u64() >= Some(20));
    let home = first.kill();

    // The configuration has lost the task: the run waits, and says so.
    let without = daemon(&home, &[]);
    let waiting = without.until(&run, |record| !record["waiting_for"].is_null());
    let missing = waiting["waiting_for"].to_string();
    assert!(missing.contains("there is no task `odd`"), "{missing}");
    assert_eq!(waiting["status"], "queued");
    let home = without.kill();

    let back = daemon(&home, &[&command]);
    let record = back.finished(&run);
    assert_eq!(
        (&record["status"], &record["answer"], &record["steps"]),
        (&json!("verified"), &json!(20000), &json!(20000)),
        "{record}"
    );
    assert!(record["resumed"].as_u64() >= Some(1), "{record}");
}

#[test]
fn a_program_that_hangs_costs_its_own_runs_only() {
    let hangs = "def step(ask):\n    while True: time.sleep(60)\n";
    let (_folder, path) = program(hangs);
    let hanging = format!(r#"tasks.odd.command=["python3", "{path}"]"#);
    let jugs = format!(r#"tasks.jugs.command=["python3", "{}"]"#, example("jugs.py"));
    // One cell, so that both runs have the same actors.
    let daemon = daemon(
        &Home::new(),
        &[
            &hanging,
            &jugs,
            "tasks.odd.timeout_ms=1000",
            "runtime.cells=1",
            "tasks.odd.restarts_max=100",
        ],
    );

    let stuck =
        daemon.submitted(&json!({"task": "odd", "input": {}, "fanout": 1, "max_rounds": 1}));
    let input: Value = serde_json::from_str(INPUT).expect("JSON");
    let other = daemon.submitted(&json!({"task": "jugs", "input": input}));
    assert_eq!(daemon.finished(&other)["status"], "verified");

    let record = daemon.finished(&stuck);
    assert_eq!(record["outcome"], "agent_failed", "{record}");
    let reason = record["failure"].as_str().unwrap_or_default();
    assert!(reason.contains("did not answer within 1000 ms"), "{reason}");
}
