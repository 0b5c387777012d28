//! Streamed chat completions, and clients that disconnect.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::daemon::{Daemon, long_run};
use crate::openai::{actions, chat, hanoi, run_of, stream};

#[test]
fn a_stream_has_each_step_then_the_answer_then_the_tokens() {
    let daemon = Daemon::start(&[]);
    let request = chat(
        &hanoi(),
        &json!({"model": "prime/fast", "stream": true, "stream_options": {"include_usage": true}}),
    );
    let mut data: Vec<_> = stream(&daemon, &request).collect();
    assert_eq!(data.pop().as_deref(), Some("[DONE]"));

    let chunks: Vec<Value> = data.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    for chunk in &chunks {
        assert_eq!(
            (&chunk["object"], &chunk["model"]),
            (&json!("chat.completion.chunk"), &json!("prime/fast"))
        );
        assert_eq!(chunk["id"], chunks[0]["id"]);
    }

    let (usage, chunks) = chunks.split_last().unwrap();
    let (last, chunks) = chunks.split_last().unwrap();
    let (answer, chunks) = chunks.split_last().unwrap();
    let (begin, steps) = chunks.split_first().unwrap();
    assert_eq!(begin["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(begin["prime"]["run"], last["prime"]["run"], "known from the first chunk on");

    let steps: Vec<_> = steps
        .iter()
        .map(|chunk| chunk["choices"][0]["delta"]["reasoning_content"].as_str().unwrap())
        .collect();
    let prime = &last["prime"];
    let lines: Vec<_> =
        actions(&daemon, prime).iter().map(|action| format!("{action}\n")).collect();
    assert_eq!((steps.len(), steps), (7, lines.iter().map(String::as_str).collect()));

    let run = run_of(&daemon, prime);
    let content = answer["choices"][0]["delta"]["content"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(content).unwrap(), run["answer"]);
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!((&last["choices"][0]["delta"], &prime["verified"]), (&json!({}), &json!(true)));
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["prompt_tokens"], run["tokens"]["prompt"]);
    assert_eq!(usage["usage"]["completion_tokens"], run["tokens"]["completion"]);

    let request = chat(&hanoi(), &json!({"stream": true, "n": 2}));
    let chunks: Vec<Value> = stream(&daemon, &request)
        .filter_map(|data| serde_json::from_str::<Value>(&data).ok())
        .filter(Value::is_object)
        .collect();

    assert!(
        chunks.iter().all(|chunk| chunk["choices"].as_array().unwrap().len() == 1),
        "no tokens were asked for"
    );

    for index in 0..2 {
        let mine: Vec<_> = chunks
            .iter()
            .map(|chunk| &chunk["choices"][0])
            .filter(|choice| choice["index"] == index)
            .collect();
        assert_eq!(mine.first().unwrap()["delta"]["role"], "assistant");
        let ended: Vec<_> = mine.iter().map(|choice| &choice["finish_reason"] == "stop").collect();
        assert!(
            ended.iter().rev().skip(1).all(|ended| !ended) && ended.last() == Some(&true),
            "{mine:?}"
        );
    }
}

#[test]
fn backtracking_is_streamed() {
    // Two wrong lines at one state, and it is left.
    let daemon = Daemon::start(&[
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.4",
        "run.attempts_max=2",
    ]);
    let run = json!({"task": "tower-of-hanoi", "input": {"n": 7, "from": 0, "to": 2}});

    let told: String =
        stream(&daemon, &chat(&run, &json!({"model": "prime/fast", "stream": true})))
            .filter_map(|data| serde_json::from_str::<Value>(&data).ok())
            .filter_map(|chunk| {
                chunk["choices"][0]["delta"]["reasoning_content"].as_str().map(str::to_owned)
            })
            .collect();
    assert!(told.contains("\n(back to step "), "{told}");
}

#[test]
fn a_disconnected_stream_cancels_its_runs() {
    let daemon = Daemon::start(&[]);
    let mut data = stream(&daemon, &chat(&long_run(), &json!({"stream": true, "n": 2})));

    // Steps come while the run is under way.
    assert!(data.by_ref().take(20).any(|data| data.contains("reasoning_content")));

    let runs = daemon.get("/v1/runs").body["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    for run in runs.as_array().unwrap() {
        daemon.until(&format!("/v1/runs/{}", run["id"].as_str().unwrap()), |run| {
            run["status"] == "running"
        });
    }

    drop(data);
    for run in runs.as_array().unwrap() {
        let ended = daemon.finished(&format!("/v1/runs/{}", run["id"].as_str().unwrap()));
        assert_eq!(ended["status"], "cancelled");
    }
}

/// Sends a request and disconnects once its run is running; returns the run's path.
fn abandon(daemon: &Daemon, request: &Value, header: &str) -> String {
    let known = daemon.get("/v1/runs").body["runs"].as_array().unwrap().len();
    let mut connection = TcpStream::connect(&daemon.address).unwrap();
    let (body, host) = (request.to_string(), &daemon.address);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         {header}Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all((head + &body).as_bytes()).unwrap();
    let runs = daemon.until("/v1/runs", |list| {
        let runs = list["runs"].as_array().unwrap();
        runs.len() > known && runs[0]["status"] == "running"
    });
    format!("/v1/runs/{}", runs["runs"][0]["id"].as_str().unwrap())
}

#[test]
fn a_client_that_disconnects_cancels_its_run_unless_it_is_kept() {
    let daemon = Daemon::start(&[]);

    let kept = abandon(&daemon, &chat(&long_run(), &json!({})), "X-Prime-Keep: true\r\n");
    let left = abandon(&daemon, &chat(&long_run(), &json!({})), "");
    assert_eq!(daemon.finished(&left)["status"], "cancelled");
    assert_eq!(daemon.get(&kept).body["status"], "running");
    assert_eq!(daemon.post_text(&format!("{kept}/cancel"), "").body["status"], "cancelled");
}

#[test]
fn a_stopping_daemon_ends_its_streams_with_an_error() {
    let daemon = Daemon::start(&[]);
    let mut waiting = stream(&daemon, &chat(&long_run(), &json!({"stream": true})));
    assert!(waiting.by_ref().take(5).any(|data| data.contains("reasoning_content")));

    let rest = std::thread::spawn(move || waiting.last());
    let (code, log) = daemon.end_by(rustix::process::Signal::TERM);
    assert_eq!(code, Some(0), "{log}");

    let last: Value = serde_json::from_str(&rest.join().unwrap().unwrap()).unwrap();
    assert_eq!(
        (&last["error"]["code"], &last["error"]["type"]),
        (&json!("draining"), &json!("server_error"))
    );
}
