//! The daemon from the side of OpenAI's clients: whole chat completions, models, errors. Streams
//! are tested in `openai_streams`.

use std::io::Read;

use prime_http_client::sse::{Events, Message};
use serde_json::{Value, json};

use crate::daemon::{Answer, Daemon, is_over, long_run};

/// Moves 3 disks from peg 0 to peg 2 in 7 steps.
pub fn hanoi() -> Value {
    json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}})
}

/// A chat completion for this run.
pub fn chat(run: &Value, fields: &Value) -> Value {
    let mut request =
        json!({"model": "prime", "messages": [{"role": "user", "content": run.to_string()}]});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

pub fn complete(daemon: &Daemon, request: &Value) -> Answer {
    daemon.post_text("/v1/chat/completions", &request.to_string())
}

/// The run of a choice as the daemon keeps it.
pub fn run_of(daemon: &Daemon, prime: &Value) -> Value {
    daemon.get(&format!("/v1/runs/{}", prime["run"].as_str().unwrap())).body
}

/// The actions of a run's only trajectory, from its trace.
pub fn actions(daemon: &Daemon, prime: &Value) -> Vec<String> {
    let trace =
        daemon.url(&format!("/v1/runs/{}/trace?states=false", prime["run"].as_str().unwrap()));
    let text = daemon.client.get(trace).send().unwrap().text().unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter_map(|event| {
            (event["event"] == "step").then(|| event["action"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// The data of the events of a stream, as they arrive.
pub fn events(reader: impl Read) -> impl Iterator<Item = String> {
    let mut events = Events::new(reader);
    std::iter::from_fn(move || events.next_message().unwrap()).filter_map(|message| match message {
        Message::Event { data, .. } => Some(data),
        Message::KeepAlive => None,
    })
}

/// Requests a stream; returns the data of its events.
pub fn stream(daemon: &Daemon, request: &Value) -> impl Iterator<Item = String> + use<> {
    let post = daemon
        .client
        .post(daemon.url("/v1/chat/completions"))
        .header("Content-Type", "application/json");
    let response = post.body(request.to_string()).send().unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["Content-Type"], "text/event-stream");
    events(response)
}

#[test]
fn a_completion_has_the_answer_its_steps_and_the_facts_of_its_run() {
    let daemon = Daemon::start(&[]);
    let answer = complete(&daemon, &chat(&hanoi(), &json!({"model": "prime/fast"})));
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = &answer.body;
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("chat.completion"), &json!("prime/fast"))
    );
    assert!(
        body["id"].as_str().unwrap().starts_with("chatcmpl-")
            && body["created"].as_u64().unwrap() > 1_700_000_000
    );
    assert_eq!(body["choices"].as_array().unwrap().len(), 1);
    let choice = &body["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    assert_eq!(
        (&choice["message"]["role"], &choice["message"]["refusal"]),
        (&json!("assistant"), &Value::Null)
    );

    let prime = &body["prime"];
    let run = run_of(&daemon, prime);
    let content: Value =
        serde_json::from_str(choice["message"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, run["answer"]);
    let reasoning = choice["message"]["reasoning_content"].as_str().unwrap();
    assert_eq!(reasoning.lines().collect::<Vec<_>>(), actions(&daemon, prime));
    assert_eq!(reasoning.lines().count(), 7);
    for field in [
        "status",
        "verified",
        "verification",
        "verifier",
        "checked_kinds",
        "outcome",
        "votes",
        "agreement",
        "steps",
        "notes",
    ] {
        assert_eq!(prime[field], run[field], "{field}");
    }
    assert_eq!((&prime["verified"], &prime["outcome"]), (&json!(true), &json!("agreed")));
    assert_eq!(prime["verification"]["steps"], json!(7));
    assert_eq!(run["trajectories"], json!(1), "the preset `fast` has one trajectory");
    let (prompt, completion) =
        (run["tokens"]["prompt"].as_u64().unwrap(), run["tokens"]["completion"].as_u64().unwrap());
    let usage = json!({
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": prompt + completion,
        // Its agents are not models.
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    });
    assert_eq!(body["usage"], usage);

    let again = complete(&daemon, &chat(&hanoi(), &json!({"seed": 7})));
    assert_eq!(again.body["system_fingerprint"], body["system_fingerprint"], "the same daemon");
}

#[test]
fn the_problem_is_in_the_last_message_or_in_prime() {
    let daemon = Daemon::start(&[]);
    let line = json!({
        "id": "x", "task": "bubble-sort", "seed": 5, "input": {"a": [3, 1, 2]}, "answer": null,
        "steps": 9,
    });
    for (request, task) in [
        (
            chat(
                &json!({"task": "dfa-simulation", "index": 7, "difficulty": "medium"}),
                &json!({}),
            ),
            "dfa-simulation",
        ),
        (chat(&line, &json!({})), "bubble-sort"),
        (chat(&json!("any words"), &json!({"prime": {"task": "n-queens"}})), "n-queens"),
        (
            chat(&json!({"task": "n-queens"}), &json!({"prime": {"task": "dfa-simulation"}})),
            "dfa-simulation",
        ),
    ] {
        let answer = complete(&daemon, &request);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(run_of(&daemon, &answer.body["prime"])["task"], task);
    }

    let fenced = format!("Sort this:\n```json\n{line}\n```");
    let answer = complete(
        &daemon,
        &json!({"model": "prime", "messages": [{"role": "user", "content": fenced}]}),
    );
    let content: Value =
        serde_json::from_str(answer.body["choices"][0]["message"]["content"].as_str().unwrap())
            .unwrap();
    assert_eq!(content["sorted"], json!([1, 2, 3]));
}

#[test]
fn prose_is_a_custom_problem() {
    let daemon = Daemon::start(&[
        "agents.executor.implementation=replay",
        r#"agents.executor.lines=["something"]"#,
    ]);
    let words = |fields: Value| {
        let mut request =
            chat(&json!({}), &json!({"messages": [{"role": "user", "content": "Say something."}]}));
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        complete(&daemon, &request).body
    };

    let said = words(json!({}));
    let run = run_of(&daemon, &said["prime"]);
    assert_eq!(
        (&run["task"], &run["instance"], &run["answer"]),
        (&json!("problem"), &json!("input"), &json!("something"))
    );
    assert_eq!(said["choices"][0]["message"]["content"], run["answer"], "a text is plain");

    // It is no JSON.
    let none = words(json!({"response_format": {"type": "json_object"}, "model": "prime/fast"}));
    let message = &none["choices"][0]["message"];
    assert_eq!((&message["content"], &none["prime"]["votes"]), (&Value::Null, &json!([])));
    assert!(message["refusal"].as_str().unwrap().contains("no answer"), "{message}");
}

#[test]
fn each_choice_is_a_run() {
    let daemon = Daemon::start(&["agents.executor.implementation=scripted"]);
    let answer =
        complete(&daemon, &chat(&hanoi(), &json!({"n": 3, "seed": 5, "model": "prime/fast"})));
    assert_eq!(answer.status, 200, "{answer:?}");

    let choices = answer.body["choices"].as_array().unwrap();
    let indices: Vec<_> = choices.iter().map(|choice| choice["index"].as_u64().unwrap()).collect();
    let seeds: Vec<_> = choices
        .iter()
        .map(|choice| run_of(&daemon, &choice["prime"])["seed"].as_u64().unwrap())
        .collect();
    assert_eq!((indices, seeds), (vec![0, 1, 2], vec![5, 6, 7]));
    assert_eq!(answer.body["prime"], choices[0]["prime"]);
}

#[test]
fn a_run_that_a_budget_ends_has_no_answer_and_says_why() {
    let daemon = Daemon::start(&[]);
    let mut run = long_run();
    run["budget"] = json!({"steps": 50});
    let answer = complete(&daemon, &chat(&run, &json!({})));

    let choice = &answer.body["choices"][0];
    assert_eq!((answer.status, &choice["finish_reason"]), (200, &json!("length")));

    let message = &choice["message"];
    assert_eq!((&message["content"], &message["reasoning_content"]), (&Value::Null, &Value::Null));
    assert!(message["refusal"].as_str().unwrap().contains("`steps_spent`"), "{message}");

    assert_eq!(answer.body["prime"]["outcome"], "steps_spent");
    assert_eq!(answer.body["prime"]["status"], "unverified");
}

#[test]
fn a_repeated_key_gets_the_runs_of_the_first_request() {
    let daemon = Daemon::start(&["server.queue_max=2"]);
    let ask = |path: &str, key: &str, request: &Value| {
        let post = daemon.client.post(daemon.url(path)).header("Idempotency-Key", key);
        let response = post
            .header("Content-Type", "application/json")
            .body(request.to_string())
            .send()
            .unwrap();
        (
            response.status().as_u16(),
            serde_json::from_str::<Value>(&response.text().unwrap()).unwrap(),
        )
    };

    let request = chat(&hanoi(), &json!({"n": 2}));
    let (status, first) = ask("/v1/chat/completions", "k", &request);
    assert_eq!(status, 200, "{first}");
    let runs =
        |completion: &Value| [0, 1].map(|at| completion["choices"][at]["prime"]["run"].clone());

    let (_, again) = ask("/v1/chat/completions", "k", &request);
    assert_eq!((runs(&again), &again["choices"]), (runs(&first), &first["choices"]));

    let other = chat(&hanoi(), &json!({"n": 1}));
    let (status, refused) = ask("/v1/chat/completions", "k", &other);
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("idempotency_key_reused")));

    let response = json!({"model": "prime", "input": hanoi().to_string()});
    let answers = [0, 1].map(|_| ask("/v1/responses", "r", &response).1["id"].clone());
    assert_eq!(answers[0], answers[1]);
    assert_eq!(daemon.get("/v1/runs").body["runs"].as_array().unwrap().len(), 3);

    // The third choice has no room. The first two go on, and are not made again.
    let long = chat(&long_run(), &json!({"n": 3, "stream": true}));
    for _ in 0..2 {
        let (status, full) = ask("/v1/chat/completions", "long", &long);
        assert_eq!((status, &full["error"]["code"]), (429, &json!("queue_full")));
    }

    // From one answer: between two, a run moves from the queue to the cells.
    let listed = daemon.get("/v1/runs").body;
    let listed = listed["runs"].as_array().unwrap();
    assert_eq!((listed.iter().filter(|run| !is_over(run)).count(), listed.len()), (2, 5));
}

#[test]
fn errors_have_the_shape_of_openai() {
    let daemon = Daemon::start(&["server.queue_max=2"]);
    let with = |fields: Value| complete(&daemon, &chat(&json!({"task": "n-queens"}), &fields));
    let unknown = with(json!({"model": "gpt-4o"}));
    unknown.refused(404, None, &["gpt-4o", "prime, prime/careful, prime/fast, prime/reliable"]);
    assert_eq!(unknown.body["error"]["code"], "model_not_found");
    with(json!({"n": 17})).refused(400, Some("n"), &["1 to 16"]);
    with(json!({"temperature": "hot"})).refused(400, Some("temperature"), &["hot"]);
    with(json!({"max_tokens": 0})).refused(400, Some("max_tokens"), &["0"]);
    with(json!({"tool_choice": "required", "tools": []})).refused(
        400,
        Some("tool_choice"),
        &["`tools`"],
    );
    with(json!({"prime": {"fanout": 0}})).refused(400, Some("prime.fanout"), &["1 to 256"]);
    with(json!({"prime": {"task": "n-quens"}})).refused(400, Some("prime.task"), &["n-queens"]);
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}});
    with(json!({
        "messages": [{"role": "user", "content": "What is 2 + 2?"}], "response_format": format,
    }))
    .refused(400, Some("response_format.json_schema.schema"), &["nothing"]);

    let misspelt = complete(&daemon, &chat(&json!({"task": "n-quens"}), &json!({"stream": true})));
    misspelt.refused(400, Some("messages[0].content"), &["`task`", "n-queens"]);
    assert_eq!(misspelt.body["error"]["type"], "invalid_request_error");
    assert_eq!(misspelt.body["error"]["param"], "messages[0].content");
    assert_eq!(daemon.get("/v1/runs").body["runs"], json!([]), "none of these was accepted");
    daemon.get("/v1/chat/completions").refused(405, None, &["POST"]);

    // Two are accepted, the third is not: then none goes on.
    let full = complete(&daemon, &chat(&long_run(), &json!({"n": 3})));
    full.refused(429, None, &["server.queue_max is 2"]);
    assert!(full.retry_after.is_some());
    for run in daemon.get("/v1/runs").body["runs"].as_array().unwrap() {
        let ended = daemon.finished(&format!("/v1/runs/{}", run["id"].as_str().unwrap()));
        assert_eq!(ended["status"], "cancelled");
    }
}

#[test]
fn prose_is_solved_by_the_configured_executor() {
    let ask = json!({
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is 2 + 2?"},
        ],
        "response_format": {
            "type": "json_schema", "json_schema": {"name": "sum", "schema": {"type": "integer"}},
        },
    });
    let replay = Daemon::start(&[
        "agents.executor.implementation=replay",
        r#"agents.executor.lines=["four", "4"]"#,
    ]);

    let answer = complete(&replay, &chat(&json!({}), &ask));
    assert_eq!(
        (answer.status, &answer.body["choices"][0]["message"]["content"]),
        (200, &json!("4")),
        "{answer:?}"
    );
    assert_eq!(answer.body["prime"]["verified"], false, "only the form of the answer was checked");

    let reference = Daemon::start(&[]);
    let refused = complete(&reference, &chat(&json!({}), &ask));
    refused.refused(
        400,
        Some("messages[1].content"),
        &["`reference`", "configure a model", "tower-of-hanoi"],
    );
}

#[test]
fn models_are_prime_and_its_presets() {
    let daemon = Daemon::start(&["presets.mine.fanout=2"]);
    let list = daemon.get("/v1/models").body;
    assert_eq!(list["object"], "list");
    let models = list["data"].as_array().unwrap();
    let names: Vec<_> = models.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["prime", "prime/careful", "prime/fast", "prime/mine", "prime/reliable"]);

    for (name, path) in
        [("prime", "prime"), ("prime/mine", "prime/mine"), ("prime/mine", "prime%2Fmine")]
    {
        let model = daemon.get(&format!("/v1/models/{path}"));
        assert_eq!((model.status, &model.body["id"]), (200, &json!(name)));
        assert_eq!(
            (&model.body["object"], &model.body["owned_by"]),
            (&json!("model"), &json!("prime-agents"))
        );
        assert!(model.body["created"].as_u64().unwrap() > 1_700_000_000);
    }

    daemon.get("/v1/models/prime/other").refused(404, None, &["prime/mine"]);
    let paths = daemon.get("/openapi.json").body["paths"].clone();
    for path in ["/v1/chat/completions", "/v1/models", "/v1/models/{model}"] {
        assert!(paths[path].is_object(), "{path} is described");
    }
}
