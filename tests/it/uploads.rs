//! Task modules that clients upload, end to end.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::binary::{done, prime, shown};
use crate::daemon::{Answer, Daemon, Home};
use crate::owners::Keyed;

/// What is different in modules that count with letters.
#[derive(Clone, Copy)]
struct Counting {
    name: &'static str,
    /// The answer at the end.
    answer: u8,
    steps: u32,
    /// What it does when it is asked for a step, as instructions.
    before_step: &'static str,
}

const ONE: Counting = Counting { name: "letters", answer: 1, steps: 1, before_step: "" };

/// A module whose state is a text that grows by a letter with each line `go`. Its input is `{}`:
/// a request of 20 bytes asks for the start; in one for a step, 28 bytes come before the text of
/// the state and 15 after it.
fn module(counting: Counting) -> Vec<u8> {
    let Counting { name, answer, steps, before_step } = counting;
    let hello = format!(
        r#"{{"prime":1,"task":{{"name":"{name}","statement":"Write letters.","example":{{}}}}}}"#
    );
    let start = r#"{"id":1,"state":"","choices":["go"],"steps_max":1000000}"#;
    let head = r#"{"id":1,"state":""#;
    let more = r#"a","choices":["go"]}"#;
    let done = format!(r#"a","done":true,"answer":{answer}}}"#);
    let data = |text: &str| text.replace('"', "\\22");
    let at = |address: u64, text: &str| (address << 32) | text.len() as u64;
    let text = format!(
        r#"(module
            (memory (export "memory") 8)
            (data (i32.const 0) "{}") (data (i32.const 256) "{}") (data (i32.const 512) "{}")
            (data (i32.const 600) "{}") (data (i32.const 700) "{}")
            (func (export "alloc") (param i32) (result i32) (i32.const 65536))
            (func (export "answer") (param $at i32) (param $len i32) (result i64)
                (local $n i32) (local $end i32) (local $tail i32)
                (if (i32.eq (i32.load8_u offset=2 (local.get $at)) (i32.const 112))
                    (then (return (i64.const {}))))
                (if (i32.eq (local.get $len) (i32.const 20)) (then (return (i64.const {}))))
                {before_step}
                (local.set $n (i32.sub (local.get $len) (i32.const 43)))
                (memory.copy (i32.const 300000) (i32.const 512) (i32.const {head_length}))
                (memory.copy (i32.const {text_at}) (i32.add (local.get $at) (i32.const 28)) (local.get $n))
                (local.set $end (i32.add (i32.const {text_at}) (local.get $n)))
                (if (i32.ge_u (i32.add (local.get $n) (i32.const 1)) (i32.const {steps}))
                    (then (local.set $tail (i32.const {done_length}))
                        (memory.copy (local.get $end) (i32.const 700) (i32.const {done_length})))
                    (else (local.set $tail (i32.const {more_length}))
                        (memory.copy (local.get $end) (i32.const 600) (i32.const {more_length}))))
                (i64.or (i64.const {out}) (i64.extend_i32_u (i32.add (local.get $tail)
                    (i32.add (local.get $n) (i32.const {head_length})))))))"#,
        data(&hello),
        data(start),
        data(head),
        data(more),
        data(&done),
        at(0, &hello),
        at(256, start),
        head_length = head.len(),
        text_at = 300_000 + head.len(),
        more_length = more.len(),
        done_length = done.len(),
        out = 300_000_u64 << 32,
    );
    wat::parse_str(text).expect("WebAssembly text")
}

fn ask(daemon: &Daemon, key: Option<&str>, method: Method, path: &str, body: Vec<u8>) -> Answer {
    let mut request = daemon.client.request(method, daemon.url(path)).body(body);
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    request.send().expect("an answer").into()
}

fn upload(daemon: &Daemon, module: Vec<u8>) -> Answer {
    ask(daemon, None, Method::POST, "/v1/tasks", module)
}

fn delete(daemon: &Daemon, task: &str) -> Answer {
    ask(daemon, None, Method::DELETE, &format!("/v1/tasks/{task}"), Vec::new())
}

const UNIFORM: &str = "agents.executor.implementation=uniform";

fn start(home: &Arc<Home>, sets: &[&str]) -> Daemon {
    Daemon::start_in(home, &[&[UNIFORM], sets].concat())
}

fn request(task: &str) -> Value {
    json!({"task": task, "input": {}, "fanout": 1, "max_rounds": 1})
}

fn own_tasks(daemon: &Daemon) -> Vec<Value> {
    let mut body = daemon.get("/v1/tasks").body;
    let mut tasks: Vec<Value> =
        serde_json::from_value(body["tasks"].take()).expect("a list of tasks");
    tasks.retain(|task| task["category"] == "own");
    tasks
}

#[test]
fn a_module_is_uploaded_run_replaced_and_deleted() {
    let daemon = start(&Home::new(), &[]);
    let first = upload(&daemon, module(ONE));
    assert_eq!((first.status, &first.body["task"]), (201, &json!("letters")), "{}", first.body);
    let again = upload(&daemon, module(ONE));
    assert_eq!((again.status, &again.body), (200, &first.body));

    let run = daemon.submitted(&request("letters"));
    let record = daemon.finished(&run);
    assert_eq!((&record["status"], &record["answer"]), (&json!("verified"), &json!(1)));
    let spec = daemon.get(&format!("{run}/spec")).body;
    assert_eq!(spec["module"], first.body["digest"], "{spec}");

    let second = upload(&daemon, module(Counting { answer: 2, ..ONE }));
    assert_eq!(second.status, 201);
    let listed = own_tasks(&daemon);
    let listed: Vec<&Value> = listed.iter().map(|task| &task["module"]).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["digest"], &listed[0]["earlier"][0]["digest"], &listed[0]["earlier"][1]),
        (&second.body["digest"], &first.body["digest"], &Value::Null)
    );
    let page = daemon.get("/v1/tasks/letters").body;
    assert_eq!((&page["problem"], &page["module"]), (&json!("Write letters."), listed[0]));
    let record = daemon.finished(&daemon.submitted(&request("letters")));
    assert_eq!(record["answer"], json!(2));

    // Under another name than it declares.
    let named = ask(&daemon, None, Method::POST, "/v1/tasks?name=signs", module(ONE));
    assert_eq!((named.status, &named.body["task"]), (201, &json!("signs")));

    assert_eq!(delete(&daemon, "letters").status, 204);
    delete(&daemon, "letters").refused(404, None, &["no task \"letters\" was uploaded"]);
    delete(&daemon, "n-queens").refused(404, None, &["no task \"n-queens\" was uploaded"]);
    daemon.submit(&request("letters")).refused(400, Some("task"), &["letters"]);
    assert_eq!(daemon.get("/v1/tasks/letters").status, 404);
    assert_eq!(own_tasks(&daemon)[0]["slug"], "signs");
}

#[test]
fn a_run_keeps_its_module_over_new_versions_deletions_and_kills() {
    let home = Home::new();
    let first = start(&home, &[]);
    let long = Counting { steps: 3_000, ..ONE };
    assert_eq!(upload(&first, module(long)).status, 201);
    let run = first.submitted(&request("letters"));
    first.until(&run, |record| record["steps"].as_u64() >= Some(20));

    let other = Counting { answer: 2, before_step: "unreachable", ..long };
    // Its example traps, so that it is not taken.
    upload(&first, module(other)).refused(422, None, &["the step `go` of its example, it trapped"]);
    assert_eq!(upload(&first, module(Counting { answer: 2, ..ONE })).status, 201);
    assert_eq!(delete(&first, "letters").status, 204);
    let home = first.kill();

    let second = start(&home, &[]);
    assert!(own_tasks(&second).is_empty());
    let record = second.finished(&run);
    assert_eq!(
        (&record["status"], &record["answer"], &record["steps"]),
        (&json!("verified"), &json!(1), &json!(3_000)),
        "{record}"
    );
    assert!(record["resumed"].as_u64() >= Some(1), "{record}");
}

#[test]
fn a_repeated_request_gets_its_run_after_the_task_was_deleted() {
    let daemon = start(&Home::new(), &[]);
    assert_eq!(upload(&daemon, module(ONE)).status, 201);
    let accepted = daemon.with_key("k", &request("letters"));
    assert_eq!(accepted.status, 202);
    assert_eq!(delete(&daemon, "letters").status, 204);

    let repeated = daemon.with_key("k", &request("letters"));
    assert_eq!((repeated.status, &repeated.body["id"]), (200, &accepted.body["id"]));
    // Another request under this key, and one without a key, are about a task that is gone.
    assert_eq!(daemon.with_key("k", &request("other")).status, 422);
    assert_eq!(daemon.with_key("new", &request("letters")).status, 400);
}

#[test]
fn lines_of_an_uploaded_task_are_judged_without_a_run() {
    let daemon = start(&Home::new(), &[]);
    assert_eq!(upload(&daemon, module(Counting { steps: 2, ..ONE })).status, 201);
    let verify = |body: Value| daemon.post_text("/v1/verify", &body.to_string());

    let first = verify(json!({"task": "letters", "input": {}, "action": "go"})).body;
    assert_eq!(
        (&first["applicable"], &first["state"], &first["ended"]),
        (&json!(true), &json!("a"), &json!(false)),
        "{first}"
    );
    let last = json!({"task": "letters", "input": {}, "actions": ["go"], "action": "go"});
    let in_state = json!({"task": "letters", "input": {}, "state": "a", "action": "go"});
    for request in [&last, &in_state] {
        let judged = verify(request.clone()).body;
        assert_eq!((&judged["ended"], &judged["answer"]), (&json!(true), &json!(1)), "{judged}");
    }
    let unknown = json!({"task": "no-task", "input": {}, "action": "go"});
    let batch = verify(json!({"batch": [last, unknown]})).body;
    assert_eq!(batch["results"][0]["answer"], json!(1), "{batch}");
    assert_eq!(batch["results"][1]["error"]["field"], json!("task"), "{batch}");

    verify(json!({"task": "letters", "input": {}, "answer": 1})).refused(
        400,
        Some("answer"),
        &["give the lines that lead to it as `actions`"],
    );
    verify(json!({"task": "letters", "action": "go"})).refused(400, Some("input"), &["is missing"]);

    let arguments = json!({"task": "letters", "input": {}, "action": "go"});
    let params = json!({"name": "judge_step", "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = daemon.post_text("/mcp", &call.to_string()).body;
    assert_eq!(body["result"]["structuredContent"]["state"], json!("a"), "{body}");
}

#[test]
fn another_key_neither_sees_nor_runs_a_task() {
    let Keyed { daemon } = Keyed::start(&[("ada", ""), ("bob", "")], &[UNIFORM]);
    let as_key = |key: &str, method, path: &str, body| ask(&daemon, Some(key), method, path, body);
    let run = |key: &str| {
        let body = request("letters").to_string().into_bytes();
        as_key(key, Method::POST, "/v1/runs", body)
    };
    let uploaded = as_key("ada", Method::POST, "/v1/tasks", module(ONE));
    assert_eq!(uploaded.status, 201, "{}", uploaded.body);
    assert_eq!(run("ada").status, 202);

    run("bob").refused(400, Some("task"), &["letters"]);
    let page = |key| as_key(key, Method::GET, "/v1/tasks/letters", Vec::new());
    page("bob").refused(404, None, &["letters"]);
    let list = as_key("bob", Method::GET, "/v1/tasks", Vec::new()).body.to_string();
    let lists = |slug: &str| list.contains(&format!(r#""slug":"{slug}""#));
    assert!(!lists("letters") && lists("n-queens"), "{list}");
    let gone = as_key("bob", Method::DELETE, "/v1/tasks/letters", Vec::new());
    gone.refused(404, None, &["no task \"letters\" was uploaded with this key"]);

    // The same name and the same module for another key are another task.
    let own = as_key("bob", Method::POST, "/v1/tasks", module(Counting { answer: 2, ..ONE }));
    assert_eq!(own.status, 201);
    assert_eq!(page("ada").body["module"]["digest"], uploaded.body["digest"]);
    let gone = as_key("bob", Method::DELETE, "/v1/tasks/letters", Vec::new());
    assert_eq!((gone.status, page("ada").status), (204, 200));
}

#[test]
fn uploads_are_limited_in_size_number_and_names() {
    let size = module(ONE).len();
    let bytes = format!("uploads.key_bytes_max={}", 5 * size / 2 + 1_024);
    let sets = ["uploads.key_tasks_max=2", "uploads.module_bytes_max=1024", &bytes];
    let daemon = start(&Home::new(), &[&sets[..], &["tasks.taken.module=x"]].concat());
    let as_name = |name: &str, counting| {
        let path = format!("/v1/tasks?name={name}");
        ask(&daemon, None, Method::POST, &path, module(counting))
    };

    for (name, status, part) in [
        ("n-queens", 400, "`n-queens` is the name of a built-in task"),
        ("problem", 400, "`problem` is the name of a built-in task"),
        ("Odd", 400, "\"Odd\" is not a name"),
        ("taken", 409, "`taken` is a task of this daemon's configuration"),
    ] {
        let field = (status == 400).then_some("name");
        as_name(name, ONE).refused(status, field, &[part]);
    }
    upload(&daemon, vec![0; 1_025]).refused(413, None, &["1024", "uploads.module_bytes_max"]);
    upload(&daemon, b"{}".to_vec()).refused(400, None, &["send the module itself"]);

    assert_eq!(as_name("one", ONE).status, 201);
    assert_eq!(as_name("two", ONE).status, 201);
    as_name("three", ONE).refused(409, None, &["2 tasks", "uploads.key_tasks_max"]);
    let mut answers = (2..=9).map(|answer| as_name("two", Counting { answer, ..ONE }));
    let full = answers.find(|answer| answer.status != 201).expect("a limit");
    full.refused(409, None, &["uploads.key_bytes_max"]);

    let off = start(&Home::new(), &["uploads.key_tasks_max=0"]);
    upload(&off, module(ONE)).refused(403, None, &["nobody may upload tasks here"]);
}

#[test]
fn what_is_no_task_is_refused_at_the_upload_with_the_reason() {
    let daemon = start(&Home::new(), &["uploads.fuel_max=1000000"]);
    let wat = |text: &str| wat::parse_str(text).expect("WebAssembly text");
    let of = |name, before_step| module(Counting { name, before_step, ..ONE });
    for (bytes, part) in [
        (Vec::new(), "it is not a usable module"),
        (b"no module".to_vec(), "it is not a usable module"),
        (wat(r#"(module (import "env" "clock" (func)))"#), "it imports `env.clock`"),
        (wat("(module)"), "it exports no memory"),
        (of("n-queens", ""), "`n-queens` is the name of a built-in task"),
        (of("Letters", ""), "`name` is \"Letters\""),
        (of("letters", "(loop $l (br $l))"), "used up the fuel of an answer (1000000 units)"),
        (of("letters", "unreachable"), "it trapped"),
        (of("letters", "(return (i64.const 2251795518717962))"), "outside of its memory"),
        (of("letters", "(return (i64.const 10))"), "it gave an invalid answer"),
        (
            wat(r#"(module (memory (export "memory") 60000)
                (func (export "alloc") (param i32) (result i32) (i32.const 0))
                (func (export "answer") (param i32 i32) (result i64) (i64.const 0)))"#),
            "memory",
        ),
    ] {
        let answer = upload(&daemon, bytes);
        let message = answer.body["error"]["message"].to_string();
        assert!(matches!(answer.status, 400 | 422), "{part}: {} {message}", answer.status);
        assert!(message.replace("\\\"", "\"").contains(part), "{part:?} is missing in {message}");
    }
    assert!(own_tasks(&daemon).is_empty());
}

#[test]
fn the_command_line_pushes_lists_and_deletes() {
    let daemon = start(&Home::new(), &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("letters.wasm");
    std::fs::write(&path, module(ONE)).expect("written");
    let url = daemon.url("");
    let tasks = |words: &[&str]| done(&[&["tasks"], words, &["--url", &url]].concat());

    let pushed = tasks(&["push", shown(&path), "--output", "json"]).json(0);
    assert_eq!(pushed["task"], "letters");
    let digest = pushed["digest"].as_str().expect("a digest");
    let again = tasks(&["push", shown(&path), "--name", "signs"]);
    assert_eq!((again.code, again.stdout), (0, format!("signs sha256:{digest}\n")));
    let listed = tasks(&["list"]);
    assert!(listed.stdout.contains("| letters | letters | ") && listed.stdout.contains("| signs"));
    assert!(listed.stdout.contains(&digest[..12]), "{}", listed.stdout);

    assert_eq!(tasks(&["delete", "signs"]).code, 0);
    let gone = tasks(&["delete", "signs"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""));
    assert!(gone.stderr.contains("no task \"signs\" was uploaded"), "{}", gone.stderr);
    std::fs::write(&path, "text").expect("written");
    tasks(&["push", shown(&path)]).refused(&["is not a WebAssembly module"]);
}

/// A module whose second step never ends.
fn looping() -> Vec<u8> {
    let second = "(if (i32.gt_u (local.get $len) (i32.const 43)) (then (loop $l (br $l))))";
    module(Counting { steps: 3, before_step: second, ..ONE })
}

#[test]
fn a_module_that_loops_holds_up_no_other_key() {
    let sets = [UNIFORM, "uploads.fuel_max=100000000000", "uploads.threads=2"];
    let Keyed { daemon } = Keyed::start(&[("ada", ""), ("bob", "")], &sets);
    let push = |key, bytes| ask(&daemon, Some(key), Method::POST, "/v1/tasks", bytes).status;
    assert_eq!(
        (push("ada", looping()), push("bob", module(Counting { steps: 3, ..ONE }))),
        (201, 201)
    );

    // Before the batches, after which the start of her module would wait for them.
    let run = ask(
        &daemon,
        Some("ada"),
        Method::POST,
        "/v1/runs",
        request("letters").to_string().into_bytes(),
    );
    assert_eq!(run.status, 202, "{}", run.body);

    // More batches than there are threads for any of it, none of which ends for minutes.
    let line = json!({"task": "letters", "input": {}, "actions": ["go"], "action": "go"});
    let batch = json!({"batch": vec![line.clone(); 100]}).to_string();
    let send = |_| {
        let request = daemon.client.post(daemon.url("/v1/verify")).body(batch.clone());
        let request = request.header(AUTHORIZATION, "Bearer ada");
        std::thread::spawn(move || request.send().is_ok())
    };
    let batches: Vec<_> = (0..12).map(send).collect();
    for _ in 0..3 {
        let body = line.to_string().into_bytes();
        let judged = ask(&daemon, Some("bob"), Method::POST, "/v1/verify", body);
        assert_eq!((judged.status, &judged.body["state"]), (200, &json!("aa")), "{}", judged.body);
    }
    assert!(batches.iter().all(|batch| !batch.is_finished()), "they were still under way");
    // Ends the requests.
    daemon.kill();
    for batch in batches {
        assert!(batch.join().is_ok());
    }
}

#[test]
fn a_configured_task_that_hides_an_uploaded_one_is_named() {
    let home = Home::new();
    let first = start(&home, &[]);
    assert_eq!(upload(&first, module(ONE)).status, 201);
    let home = first.kill();

    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("prime.toml");
    let write = |more: &str| {
        let journal = shown(&home.journal()).to_owned();
        let text = format!(
            "[agents.executor]\nimplementation = \"uniform\"\n[server]\nbind = \"127.0.0.1:0\"\n\
             [journal]\npath = {journal:?}\n{more}"
        );
        std::fs::write(&config, text).expect("written");
    };
    write("");
    let daemon =
        Daemon::spawn(prime(&["serve", "--config", shown(&config)]), &home).expect("it starts");
    let reload = || daemon.post("/v1/reload").body;
    assert_eq!(reload()["warnings"], json!([]));

    write("[tasks.letters]\nmodule = \"letters.wasm\"\n[uploads]\nkey_tasks_max = 3\n");
    let reloaded = reload();
    assert_eq!(
        (&reloaded["taken"], &reloaded["at_next_start"]),
        (&json!(["tasks.letters", "uploads.key_tasks_max"]), &json!([])),
        "{reloaded}"
    );
    let warning = reloaded["warnings"][0].as_str().expect("a warning");
    for part in ["`letters` hides the uploaded task", "DELETE /v1/tasks/letters"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(delete(&daemon, "letters").status, 204);
    assert_eq!(reload()["warnings"], json!([]));
}
