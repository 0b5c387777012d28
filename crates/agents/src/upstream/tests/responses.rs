//! Well-behaved servers.

use serde_json::{Value, json};

use super::server::{Act, Server};
use super::{model, pool, request};
use crate::model::{CompletionRequest, Model as _};
use crate::upstream::{OpenAiModel, PoolError};
use prime_settings::{Api, Dialect, UpstreamPool};
use prime_stub_server::StubServer;

/// Echoes the prompt.
fn echo(body: &Value) -> String {
    let prompt = body.get("prompt").or_else(|| body.pointer("/messages/1/content"));
    format!("to {}", prompt.and_then(Value::as_str).unwrap_or("nothing"))
}

#[tokio::test]
async fn chats_and_completions_are_answered() {
    for api in [Api::Chat, Api::Completions] {
        let stub = StubServer::start(echo).unwrap();
        let model = model(&UpstreamPool { api, ..pool(&[&stub.url]) });

        let reply = model.complete(request(1)).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.is_truncated), ("to State: 1", false));
        assert_eq!(reply.usage.completion, 3);

        let host = stub.url.trim_start_matches("http://").trim_end_matches("/v1");
        assert_eq!(reply.source.as_deref(), Some(format!("{host} m").as_str()));
        let status = &model.snapshot()[0];
        assert_eq!((status.requests, status.retries, status.in_flight), (1, 0, 0));
        assert!(status.failures.is_empty() && status.is_healthy);
    }
}

#[tokio::test]
async fn requests_follow_the_configuration() {
    let server = Server::playing(vec![Act::Say("a")]).await;
    let settings = UpstreamPool {
        dialect: Dialect::LlamaServer,
        extra: r#"{"cache_prompt": true, "seed": null}"#.to_owned(),
        ..pool(&[&server.url])
    };

    let asked =
        CompletionRequest { grammar: Some("root ::= \"a\"".into()), logprobs: true, ..request(1) };
    model(&settings).complete(asked).await.unwrap();

    let request = &server.seen().requests[0];
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "State: 1"},
        ],
        "max_tokens": 16, "temperature": 0.5, "top_p": 1.0,
        "stream": true, "stream_options": {"include_usage": true},
        "logprobs": true, "top_logprobs": 1,
        "grammar": "root ::= \"a\"", "cache_prompt": true,
    });
    assert_eq!(body, expected);
    assert!(request.head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{}", request.head);
    assert!(request.head.contains("\r\ncontent-type: application/json"), "{}", request.head);
    assert!(!request.head.contains("authorization"), "there is no key");
}

/// Connections belong to the pool's runtime, so they survive the callers' runtimes.
#[test]
fn one_pool_serves_many_runtimes() {
    let stub = StubServer::start(echo).unwrap();
    let model = model(&pool(&[&stub.url]));
    let in_a_runtime = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        (0..20).for_each(|affinity| {
            assert_eq!(
                runtime.block_on(model.complete(request(affinity))).unwrap().text,
                "to State: 1"
            );
        });
    };

    in_a_runtime();
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(in_a_runtime))));
    in_a_runtime();

    assert_eq!(model.snapshot()[0].requests, 100);
    assert!(model.snapshot()[0].failures.is_empty());
}

#[test]
fn pools_that_cannot_be_used_are_refused() {
    let extra =
        |text: &str| UpstreamPool { extra: text.to_owned(), ..pool(&["http://127.0.0.1:1/v1"]) };
    for (settings, expected) in [
        (pool(&[]), "the pool has no server"),
        (pool(&["localhost:80"]), "upstream localhost:80: a URL must begin with http://"),
        (
            pool(&["http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"]),
            "upstream 127.0.0.1:1 m is in the pool twice",
        ),
        (
            pool(&["http://127.0.0.1:1/a", "http://127.0.0.1:1/b", "http://127.0.0.1:1/b/"]),
            "upstream 127.0.0.1:1/b/chat/completions m is in the pool twice",
        ),
        (extra("[]"), "`extra` is not a JSON object"),
        (extra(r#"{"stream": true}"#), "`extra` has the field `stream`"),
    ] {
        let message = OpenAiModel::new(&settings, |_| None).err().unwrap().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn servers_behind_one_gateway_have_distinct_names() {
    let urls = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b", "https://127.0.0.1:1/b"];
    let model = model(&pool(&urls));
    let names: Vec<_> = model.snapshot().iter().map(|status| status.name.to_string()).collect();
    let expected = [
        "127.0.0.1:1 m",
        "127.0.0.1:1/b/chat/completions m",
        "https://127.0.0.1:1/b/chat/completions m",
    ];
    assert_eq!(names, expected);
}

/// Whether there are root certificates depends on the machine; nothing panics either way.
#[tokio::test]
async fn a_plain_server_is_an_error_for_tls() {
    let server = Server::playing(vec![Act::Say("a")]).await;
    let settings = UpstreamPool {
        retries_max: 0,
        connect_timeout_ms: 100,
        ..pool(&[&server.url.replace("http:", "https:")])
    };

    match OpenAiModel::new(&settings, |_| None) {
        Ok(model) => assert!(
            model
                .complete(request(1))
                .await
                .unwrap_err()
                .reason
                .starts_with("connection timed out")
        ),
        Err(error) => assert!(matches!(error, PoolError::Client(_)), "{error}"),
    }
}
