//! The tools over HTTP where messages are malformed or come in batches.

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::daemon::{Answer, Daemon};

fn ask(daemon: &Daemon, version: Option<&str>, body: &str) -> Answer {
    let mut request =
        daemon.client.post(daemon.url("/mcp")).header(CONTENT_TYPE, "application/json");
    if let Some(version) = version {
        request = request.header("MCP-Protocol-Version", version);
    }
    request.body(body.to_owned()).send().unwrap().into()
}

/// Id and code, or `null` for a result.
fn outline(answer: &Value) -> Value {
    match answer {
        Value::Array(answers) => answers.iter().map(outline).collect(),
        answer => json!([answer["id"], answer["error"]["code"]]),
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// A call of a tool with these parameters.
fn call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

#[test]
fn what_is_malformed_is_answered_in_the_form_of_the_protocol() {
    let daemon = Daemon::start(&[]);
    for (body, status, expected) in [
        (PING, 200, json!(["p", null])),
        (&format!("\u{feff}{PING}"), 200, json!(["p", null])),
        // Which one is meant, nobody knows.
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400, json!([2, -32600])),
        ("{not json", 400, json!([null, -32700])),
        ("", 400, json!([null, -32700])),
        ("3", 400, json!([null, -32600])),
        ("{}", 400, json!([null, -32600])),
        (r#"{"id":7,"method":"ping"}"#, 400, json!([7, -32600])),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, 400, json!(["a", -32600])),
        (r#"{"jsonrpc":"2.0","id":8}"#, 400, json!([8, -32600])),
        (r#"{"jsonrpc":"2.0","id":9,"method":4}"#, 400, json!([9, -32600])),
        (r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}"#, 400, json!([9, -32600])),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, json!([null, -32600])),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, json!([null, -32600])),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, json!([1, -32602])),
        (&call(r#"{"name":3}"#), 200, json!([1, -32602])),
        (&call(r#"{"name":"list_tasks","arguments":[1]}"#), 200, json!([1, -32602])),
        (&call(r#"{"name":"no_such_tool"}"#), 200, json!([1, -32602])),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/nothing"}"#, 200, json!([1, -32601])),
    ] {
        let answer = ask(&daemon, None, body);
        assert_eq!(
            (answer.status, outline(&answer.body)),
            (status, expected),
            "{body}: {answer:?}"
        );
        assert_eq!(answer.body["jsonrpc"], "2.0");
    }

    let unsupported = daemon.client.post(daemon.url("/mcp")).body(PING).send().unwrap();
    let unsupported = Answer::from(unsupported);
    assert_eq!((unsupported.status, outline(&unsupported.body)), (415, json!(["p", -32600])));
}

#[test]
fn batches_are_answered_in_the_versions_that_have_them() {
    let daemon = Daemon::start(&[]);
    let batch = format!(
        r#"[{PING},{{"jsonrpc":"2.0","id":1,"method":"tools/list"}},{{"jsonrpc":"2.0","id":2,"method":"nothing"}},
           {{"jsonrpc":"2.0","method":"notifications/initialized"}},5,{{"jsonrpc":"2.0","id":3,"method":"initialize"}}]"#
    );
    let answers = json!([["p", null], [1, null], [2, -32601], [null, -32600], [3, -32600]]);
    for version in [None, Some("2025-03-26"), Some("2024-11-05")] {
        let answer = ask(&daemon, version, &batch);
        assert_eq!((answer.status, outline(&answer.body)), (200, answers.clone()), "{answer:?}");
        assert_eq!(answer.body[1]["result"]["tools"].as_array().unwrap().len(), 13);

        let empty = ask(&daemon, version, "[]");
        assert_eq!((empty.status, outline(&empty.body)), (400, json!([null, -32600])));
        let large = ask(&daemon, version, &format!("[{}]", vec![PING; 51].join(",")));
        assert_eq!((large.status, outline(&large.body)), (400, json!([null, -32600])));
    }
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let answer = ask(&daemon, Some(version), &batch);
        assert_eq!((answer.status, outline(&answer.body)), (400, json!([null, -32600])));
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("send each message by itself"), "{message}");
    }

    // Nothing in it asks for an answer.
    let silent = daemon.client.post(daemon.url("/mcp")).header(CONTENT_TYPE, "application/json");
    let silent = silent.body(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#).send().unwrap();
    assert_eq!((silent.status().as_u16(), silent.text().unwrap()), (202, String::new()));
}
