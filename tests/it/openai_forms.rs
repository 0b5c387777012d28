//! What OpenAI's clients get besides a verified answer as text: refusals, function calls,
//! responses.

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::openai::{actions, chat, complete, events, hanoi, run_of, stream};

#[test]
fn prose_that_the_model_cannot_read_is_refused_with_an_example() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    let ask =
        json!({"messages": [{"role": "user", "content": "Solve Tower of Hanoi with 3 disks"}]});
    let refused = complete(&daemon, &chat(&json!({}), &ask));
    refused.refused(
        400,
        Some("messages[0].content"),
        &["`llama`", "`step`", "\"task\": \"tower-of-hanoi\"", "/v1/tasks"],
    );
    assert_eq!(daemon.get("/v1/runs").body["runs"], json!([]));

    let example = refused.body["error"]["message"].as_str().unwrap();
    let example: Value = serde_json::from_str(
        &example[example.find('{').unwrap()..=example.rfind("}}").unwrap() + 1],
    )
    .unwrap();
    assert_eq!(example, hanoi(), "the example can be sent as it is");
}

#[test]
fn a_task_that_the_model_has_not_learnt_is_refused_unless_forced() {
    let daemon =
        Daemon::start(&["agents.executor.implementation=llama", "agents.executor.engine=tiny"]);
    let unlearnt = json!({"task": "sudoku", "index": 3});
    complete(&daemon, &chat(&unlearnt, &json!({}))).refused(
        400,
        Some("messages[0].content"),
        &["have not learnt", "n-queens"],
    );
    daemon.submit(&unlearnt).refused(
        400,
        Some("task"),
        &["have not learnt `sudoku`", "n-queens", "`force`"],
    );

    let forced = json!({"task": "sudoku", "index": 3, "force": true, "budget": {"steps": 2}});
    assert_eq!(daemon.finished(&daemon.submitted(&forced))["outcome"], "steps_spent");
}

#[test]
fn a_limit_of_completion_tokens_is_kept() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    for (field, limit) in [("max_tokens", 1), ("max_tokens", 5), ("max_completion_tokens", 50)] {
        let answer = complete(&daemon, &chat(&hanoi(), &json!({ field: limit }))).body;
        assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
        let spent = answer["usage"]["completion_tokens"].as_u64().expect("a number");
        assert!((1..=limit).contains(&spent), "{limit}: {answer}");
    }
}

#[test]
fn an_answer_that_the_verifier_objects_to_is_a_refusal() {
    // Minor violations are tolerated on the way, and the answer is not verified.
    let daemon = Daemon::start(&[
        "agents.executor.implementation=replay",
        r#"agents.executor.lines=["[8, 8, 5]"]"#,
        "run.tau_soft=5.0",
        "run.tau_hard=6.0",
    ]);
    let check =
        |name: &str, check: &str| json!({"name": name, "severity": "minor", "check": check});
    let problem = json!({"problem": {
        "statement": "Give three different numbers.", "input": {}, "steps": "single",
        "answer": {"schema": {"type": "array"}},
        "constraints": [check("different", "answer[0] != answer[1]")],
    }, "fanout": 1, "max_rounds": 1});

    let answer = complete(&daemon, &chat(&problem, &json!({})));
    let message = &answer.body["choices"][0]["message"];
    let run = run_of(&daemon, &answer.body["prime"]);
    assert_eq!((&run["answer"], &run["verified"]), (&json!([8, 8, 5]), &json!(false)), "{run}");
    assert_eq!((answer.status, &message["content"]), (200, &Value::Null), "{answer:?}");
    assert!(message["refusal"].as_str().unwrap().contains("no answer to rely on"), "{message}");

    let chunks: Vec<Value> = stream(&daemon, &chat(&problem, &json!({"stream": true})))
        .filter_map(|data| serde_json::from_str(&data).ok())
        .collect();
    assert!(
        chunks.iter().all(|chunk| chunk["choices"][0]["delta"]["content"]
            .as_str()
            .is_none_or(str::is_empty))
    );
    assert!(
        chunks.iter().any(|chunk| chunk["choices"][0]["delta"]["refusal"].is_string()),
        "{chunks:?}"
    );
}

/// A function whose argument is the sorted list.
fn sorter() -> Value {
    json!({"name": "sorted", "description": "Takes the sorted list", "parameters": {
        "type": "object",
        "properties": {"sorted": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "required": ["sorted"], "$defs": {"n": {"type": "integer"}},
    }})
}

#[test]
fn a_forced_function_is_called_with_the_answer() {
    let daemon = Daemon::start(&[]);
    let run = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "fanout": 1});
    let other = json!({"name": "other", "parameters": {"type": "object", "required": ["x"]}});
    let tool = |function: Value| json!({"type": "function", "function": function});
    let tools = json!([tool(other), tool(sorter())]);

    for choice in [json!("required"), json!({"type": "function", "function": {"name": "sorted"}})] {
        let answer =
            complete(&daemon, &chat(&run, &json!({"tools": tools, "tool_choice": choice})));
        let choice = &answer.body["choices"][0];
        assert_eq!(
            (answer.status, &choice["finish_reason"]),
            (200, &json!("tool_calls")),
            "{answer:?}"
        );
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!("sorted"))
        );
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&arguments["sorted"], &choice["message"]["content"]),
            (&json!([1, 2, 3]), &Value::Null)
        );
    }

    let wrong =
        json!({"tools": tools, "tool_choice": {"type": "function", "function": {"name": "other"}}});
    let refused = complete(&daemon, &chat(&run, &wrong)).body["choices"][0]["message"].clone();
    assert_eq!(refused.get("tool_calls"), None, "its schema is kept");
    assert!(refused["refusal"].as_str().unwrap().contains("`other`"), "{refused}");

    let free = complete(&daemon, &chat(&run, &json!({"tools": tools, "tool_choice": "auto"})));
    assert_eq!(free.body["choices"][0]["finish_reason"], "stop", "an answer needs no tool");

    let chunks: Vec<Value> = stream(
        &daemon,
        &chat(&run, &json!({"tools": tools, "tool_choice": "required", "stream": true})),
    )
    .filter_map(|data| serde_json::from_str(&data).ok())
    .collect();
    let calls: Vec<_> =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"].get("tool_calls")).collect();
    assert_eq!(
        (calls.len(), &calls[0][0]["index"], &calls[0][0]["function"]["name"]),
        (1, &json!(0), &json!("sorted"))
    );
}

#[test]
fn a_function_is_called_for_prose() {
    let daemon = Daemon::start(&[
        "agents.executor.implementation=replay",
        r#"agents.executor.lines=["[1]", "{\"name\": \"sorted\", \"arguments\": {\"sorted\": [1, 2]}}"]"#,
    ]);
    let tools = json!([
        {"type": "function", "function": sorter()},
        {
            "type": "function",
            "function": {"name": "give_up", "parameters": {"type": "object", "required": ["why"]}},
        },
    ]);
    let ask = json!({
        "messages": [{"role": "user", "content": "Sort 2 and 1."}], "tools": tools,
        "tool_choice": "required",
    });

    let answer = complete(&daemon, &chat(&json!({}), &ask));
    let call = &answer.body["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call, &json!({"name": "sorted", "arguments": "{\"sorted\":[1,2]}"}), "{answer:?}");
    let statement = run_of(&daemon, &answer.body["prime"]);
    assert_eq!(statement["task"], "problem");
}

#[test]
fn an_answer_of_another_form_than_asked_for_is_a_refusal() {
    let daemon = Daemon::start(&[]);
    let run = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "fanout": 1});
    let format = |schema: Value| {
        json!({
            "response_format": {
                "type": "json_schema", "json_schema": {"name": "x", "schema": schema},
            },
        })
    };

    let kept =
        complete(&daemon, &chat(&run, &format(json!({"type": "object", "required": ["sorted"]}))));
    assert!(kept.body["choices"][0]["message"]["content"].is_string(), "{kept:?}");

    let other =
        complete(&daemon, &chat(&run, &format(json!({"type": "object", "required": ["colour"]}))));
    let message = &other.body["choices"][0]["message"];
    assert_eq!(message["content"], Value::Null);
    assert!(message["refusal"].as_str().unwrap().contains("form"), "{message}");
}

#[test]
fn a_response_has_the_steps_then_the_answer() {
    let daemon = Daemon::start(&[]);
    let ask = |fields: Value| {
        let mut request = json!({"model": "prime/fast", "input": hanoi().to_string()});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        request.to_string()
    };
    let answer = daemon.post_text("/v1/responses", &ask(json!({})));
    let body = &answer.body;
    assert_eq!(
        (answer.status, &body["object"], &body["status"]),
        (200, &json!("response"), &json!("completed")),
        "{answer:?}"
    );

    let (steps, message) = (&body["output"][0], &body["output"][1]);
    assert_eq!(
        steps["summary"][0]["text"].as_str().unwrap().lines().collect::<Vec<_>>(),
        actions(&daemon, &body["prime"])
    );
    let content: Value =
        serde_json::from_str(message["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&message["role"], &content),
        (&json!("assistant"), &run_of(&daemon, &body["prime"])["answer"])
    );

    let spent = daemon.post_text(
        "/v1/responses",
        &ask(json!({
            "prime": {
                "task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2},
                "budget": {"steps": 9},
            },
        })),
    );
    assert_eq!(
        (&spent.body["status"], &spent.body["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(spent.body["output"][0]["content"][0]["type"], "refusal", "{spent:?}");

    let post =
        daemon.client.post(daemon.url("/v1/responses")).header("Content-Type", "application/json");
    let streamed: Vec<Value> = events(post.body(ask(json!({"stream": true}))).send().unwrap())
        .map(|data| serde_json::from_str(&data).unwrap())
        .collect();

    let kinds: Vec<_> = streamed.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("response.created", "response.completed"));
    let numbers: Vec<_> =
        streamed.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..streamed.len() as u64), "{numbers:?}");
    let text = streamed.iter().find(|event| event["type"] == "response.output_text.delta").unwrap();
    assert_eq!(text["delta"], message["content"][0]["text"]);

    daemon.post_text("/v1/responses", &ask(json!({"previous_response_id": "resp_1"}))).refused(
        400,
        Some("previous_response_id"),
        &["nothing is stored"],
    );
    daemon.post_text("/v1/responses", &ask(json!({"input": "{\"task\": \"n-quens\"}"}))).refused(
        400,
        Some("input"),
        &["n-queens"],
    );
}

#[test]
fn routes_that_are_missing_say_which_to_use() {
    let daemon = Daemon::start(&[]);
    for path in ["/v1/completions", "/v1/embeddings"] {
        daemon.post_text(path, "{}").refused(404, None, &["/v1/chat/completions", "/v1/responses"]);
        daemon.get(path).refused(404, None, &["/v1/chat/completions"]);
    }
}
