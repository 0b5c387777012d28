//! Servers as a run meets them, through the executable: those of each ready-made configuration, as
//! their documents say that they answer, and those that misbehave.

use std::path::Path;
use std::sync::{Arc, Mutex};

use prime_stub_server::{Asked, Reply, StubServer};
use serde_json::{Value, json};

use crate::binary::{Done, run};

/// What a server replies to each request.
type Replies = Box<dyn Fn() -> Reply + Send + Sync>;

/// A task of one step, and the step that solves its first instance.
const TASK: &str = "n-queens-last-queen";
const STEP: &str = "place 4 2";

/// One trajectory, and failures that are not waited for.
const ONCE: [&str; 12] = [
    "--set",
    "pools.server.breaker_failures=0",
    "--set",
    "run.fanout=1",
    "--set",
    "run.max_rounds=1",
    "--set",
    "pools.server.retries_max=1",
    "--set",
    "pools.server.backoff_ms=1",
    "--set",
    "pools.server.backoff_max_ms=2",
];

fn is_turn(asked: &Asked) -> bool {
    asked.path.ends_with("/chat/completions")
}

/// The stub in place of the server of a configuration.
fn asking(configuration: &str, url: &str, more: &[&str]) -> Done {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("config/servers/{configuration}.toml"))
        .display()
        .to_string();
    let pool = format!("pools.server.upstreams=[{{url=\"{url}\", model=\"m\"}}]");
    let own = ["--config", &path, "--set", &pool];
    run(&[&[TASK], &own, &ONCE, more])
}

/// The events of a streamed answer in which a model thinks before it says something, a word a part.
fn streamed(thought: &str, field: &str, said: &str) -> Reply {
    let part = |delta: Value| json!({"model": "m", "choices": [{"delta": delta}]}).to_string();
    let words = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut events = vec![part(json!({"role": "assistant"}))];
    events.extend(words(thought).into_iter().map(|word| part(json!({field: word}))));
    events.extend(words(said).into_iter().map(|word| part(json!({"content": word}))));
    events.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}).to_string());
    events.push(
        json!({"choices": [], "usage": {
            "prompt_tokens": 90, "completion_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 7},
        }})
        .to_string(),
    );
    events.push("[DONE]".to_owned());
    Reply::Events(events)
}

#[test]
fn each_ready_made_configuration_solves_a_task_with_a_server_as_documented() {
    let json_of_step = json!({ "action": STEP }).to_string();
    for (name, field, said, limit, form) in [
        ("llama-server", "reasoning_content", STEP, "max_tokens", "/grammar"),
        ("vllm", "reasoning", STEP, "max_tokens", "/structured_outputs/grammar"),
        ("sglang", "reasoning_content", STEP, "max_tokens", "/ebnf"),
        ("ollama", "reasoning", &json_of_step, "max_tokens", "/response_format/json_schema"),
        ("lm-studio", "reasoning", &json_of_step, "max_tokens", "/response_format/json_schema"),
        (
            "hosted",
            "reasoning",
            &json_of_step,
            "max_completion_tokens",
            "/response_format/json_schema",
        ),
    ] {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (seen, said) = (Arc::clone(&bodies), said.to_owned());
        let stub = StubServer::scripted(move |asked| {
            if !is_turn(asked) {
                return Reply::Json(200, json!({"object": "list", "data": [{"id": "m"}]}));
            }
            seen.lock().expect("no panic").push(asked.body.clone());
            streamed("the last column is free", field, &said)
        })
        .expect("a port");

        // A key of the environment is not there in tests.
        let result = asking(name, &stub.url, &[]).json(0);
        assert_eq!((&result["verified"], &result["steps"]), (&json!(true), &json!(1)), "{name}");
        let tokens = json!({"prompt": 90, "completion": 12, "cached": 64, "reasoning": 7});
        assert_eq!(result["tokens"], tokens, "{name}");

        let bodies = bodies.lock().expect("no panic");
        assert!(bodies[0][limit].is_u64(), "{name}: {}", bodies[0]);
        assert!(bodies[0].pointer(form).is_some(), "{name}: {}", bodies[0]);
        assert_eq!(bodies[0]["stream"], true, "{name}");
    }
}

#[test]
fn a_servers_kind_is_asked_for_and_a_refused_field_left_out() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let stub = StubServer::scripted(move |asked| match asked.path.as_str() {
        "/props" => {
            Reply::Json(200, json!({"build_info": "b1", "default_generation_settings": {}}))
        }
        _ if is_turn(asked) => {
            seen.lock().expect("no panic").push(asked.body.clone());
            if asked.body.get("temperature").is_some() {
                let said = "Unsupported value: 'temperature' does not support 0.7 with this model.";
                let error = json!({"error": {"message": said, "param": "temperature"}});
                return Reply::Json(400, error);
            }
            streamed("", "reasoning", STEP)
        }
        _ => Reply::Json(200, json!({"object": "list", "data": [{"id": "m"}]})),
    })
    .expect("a port");

    let result = asking("llama-server", &stub.url, &["--set", "pools.server.dialect=auto"]).json(0);
    assert_eq!(result["verified"], true, "{result}");
    let bodies = bodies.lock().expect("no panic");
    assert_eq!(bodies.len(), 2, "refused once");
    assert!(bodies.iter().all(|body| body["grammar"].is_string()), "{bodies:?}");
    assert!(bodies[1].get("temperature").is_none() && bodies[1]["top_p"].is_number());
}

/// What a run says and costs whose server answers each turn so.
fn said_and_spent(reply: impl Fn() -> Reply + Send + Sync + 'static) -> (String, u64) {
    let stub = StubServer::scripted(move |asked| {
        if is_turn(asked) { reply() } else { Reply::Json(200, json!({"data": [{"id": "m"}]})) }
    })
    .expect("a port");
    // Greedy, so that thinking without an answer is not thought again.
    let more = ["--set", "run.temperature=0", "--set", "pools.server.idle_timeout_ms=300"];
    let done = asking("llama-server", &stub.url, &more);
    assert_ne!(done.code, 0, "{}", done.stdout);
    let result: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let spent = result["tokens"]["completion"].as_u64().unwrap_or_default();
    (format!("{}{}", done.stdout, done.stderr), spent)
}

#[test]
fn a_server_that_misbehaves_is_named_and_what_it_cost_is_counted() {
    let part = || json!({"choices": [{"delta": {"content": "a"}}]}).to_string();
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 40});
    let thought = json!({
        "choices": [{"message": {"content": null, "reasoning": "hm"}, "finish_reason": "length"}],
        "usage": usage,
    });
    let page = "<html>Sign in</html>".to_owned();
    let cases: [(&str, Replies, &str, u64); 8] = [
        (
            "HTML",
            Box::new(move || Reply::Text(200, "text/html", page.clone())),
            "response is `text/html` instead of JSON",
            0,
        ),
        (
            "thinking only",
            Box::new(move || Reply::Json(200, thought.clone())),
            "the model has only thought and answered nothing, in 40 tokens, where it was cut off",
            40,
        ),
        (
            "an empty list of choices",
            Box::new(|| Reply::Json(200, json!({"choices": []}))),
            "response without `choices[0]`",
            0,
        ),
        (
            "half a stream",
            Box::new(move || Reply::Events(vec![part(), part(), part()])),
            "the stream broke off before its end, after 3 tokens",
            3,
        ),
        (
            "429 for ever",
            Box::new(|| Reply::Json(429, json!({"error": {"message": "slow down"}}))),
            "status 429 (slow down): lower `concurrent_max`, or wait",
            0,
        ),
        (
            "a stream without end",
            Box::new(|| {
                Reply::Endless(json!({"choices": [{"delta": {"content": "a "}}]}).to_string())
            }),
            "the server does not stop at `max_tokens`",
            256,
        ),
        (
            "silence",
            Box::new(|| Reply::Silence),
            "the server was silent for 300 ms: raise `idle_timeout_ms`",
            0,
        ),
        (
            "an error within a stream",
            Box::new(|| {
                Reply::Events(vec![json!({"error": {"message": "out of memory"}}).to_string()])
            }),
            "out of memory",
            0,
        ),
    ];

    for (name, reply, words, least) in cases {
        let (said, spent) = said_and_spent(reply);
        assert!(said.contains(words), "{name}: {words:?} is missing in {said}");
        assert!(spent >= least, "{name}: {spent} tokens of at least {least} in {said}");
    }
}

#[test]
fn a_server_that_answers_with_another_model_is_named_in_the_trace() {
    let stub = StubServer::scripted(|asked| {
        let choice = json!({"message": {"content": STEP}, "finish_reason": "stop"});
        if is_turn(asked) {
            Reply::Json(200, json!({"model": "quite-another-9b", "choices": [choice]}))
        } else {
            Reply::Json(200, json!({"data": [{"id": "m"}]}))
        }
    })
    .expect("a port");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.jsonl").display().to_string();
    let pool = format!("pools.server.upstreams=[{{url=\"{}\", model=\"qwen3-8b\"}}]", stub.url);
    let more = ["--trace", &trace, "--set", &pool];
    assert_eq!(asking("llama-server", &stub.url, &more).json(0)["verified"], true);
    let trace = std::fs::read_to_string(trace).expect("a trace");
    assert!(trace.contains("qwen3-8b (as quite-another-9b)"), "{trace}");
}
