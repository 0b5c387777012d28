//! A conversation over pipes, line by line.

use async_trait::async_trait;
use rmcp::ServiceExt as _;
use serde_json::{Map, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;
use crate::mcp::{Backend, Server, ToolError, Watch};

/// No test here gets as far as a run.
struct Nothing;

#[async_trait]
impl Backend for Nothing {
    async fn verify(&self, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn start(&self, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn list(&self, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn read(&self, _: &str) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn events(&self, _: &str, _: Watch) -> Result<Vec<(u64, Value)>, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn retry(&self, _: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn cancel(&self, _: &str) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn approvals(&self, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
    async fn decide(&self, _: &str, _: u32, _: Map<String, Value>) -> Result<Value, ToolError> {
        Err(ToolError("nothing".to_owned()))
    }
}

struct Client {
    answers: BufReader<ReadHalf<DuplexStream>>,
    lines: WriteHalf<DuplexStream>,
}

impl Client {
    fn connect() -> Self {
        let (client, server) = duplex(1 << 16);
        let (reader, writer) = split(server);
        tokio::spawn(async move {
            let service = Server::new(Arc::new(Nothing)).serve(Lines::new(reader, writer)).await;
            service.expect("a session").waiting().await
        });
        let (answers, lines) = split(client);
        Self { answers: BufReader::new(answers), lines }
    }

    /// A session of a version of the protocol.
    async fn of_version(version: &str) -> Self {
        let mut client = Self::connect();
        client.initialize(version).await;
        client
    }

    async fn initialize(&mut self, version: &str) {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = self.ask(&hello.to_string()).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    async fn write(&mut self, line: &str) {
        self.lines.write_all(line.as_bytes()).await.unwrap();
        self.lines.write_all(b"\n").await.unwrap();
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.write(line).await;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

/// Id and code, or `null` for a result.
fn outline(answer: &Value) -> Value {
    match answer {
        Value::Array(answers) => answers.iter().map(outline).collect(),
        answer => json!([answer["id"], answer["error"]["code"]]),
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

#[tokio::test]
async fn what_is_malformed_is_answered_and_the_conversation_continues() {
    let mut client = Client::of_version("2025-03-26").await;
    for (line, expected) in [
        ("{not json", json!([null, -32700])),
        ("\u{7f}", json!([null, -32700])),
        ("3", json!([null, -32600])),
        (r#""text""#, json!([null, -32600])),
        ("{}", json!([null, -32600])),
        (r#"{"id":7,"method":"ping"}"#, json!([7, -32600])),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!(["a", -32600])),
        (r#"{"jsonrpc":"2.0","id":8}"#, json!([8, -32600])),
        (r#"{"jsonrpc":"2.0","id":9,"method":4}"#, json!([9, -32600])),
        (r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}"#, json!([9, -32600])),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!([null, -32600])),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!([null, -32600])),
        (r#"{"jsonrpc":"2.0","id":10,"method":"nothing"}"#, json!([10, -32601])),
        (
            r#"{"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"n":18446744073709551617}}"#,
            json!([14, -32600]),
        ),
        ("[]", json!([null, -32600])),
        ("[1]", json!([[null, -32600]])),
        (
            r#"[{"jsonrpc":"2.0","id":11,"method":4},{"jsonrpc":"2.0","method":"notifications/x"},
               {"jsonrpc":"2.0","id":12,"method":"ping"},{"jsonrpc":"2.0","id":13,"method":"initialize"}]"#,
            json!([[11, -32600], [13, -32600], [12, null]]),
        ),
        (PING, json!(["p", null])),
    ] {
        let answer = client.ask(&line.replace('\n', " ")).await;
        assert_eq!(outline(&answer), expected, "{line}: {answer}");
    }

    // Nothing answers these: the next answer is that to the ping.
    for silent in [
        "",
        "  \r",
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":[],"error":{"code":-32700,"message":"x"}}"#,
        r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#,
    ] {
        client.write(silent).await;
        assert_eq!(outline(&client.ask(PING).await), json!(["p", null]), "{silent}");
    }
}

#[tokio::test]
async fn later_versions_have_no_batches() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::of_version(version).await;
        let answer = client.ask(&format!("[{PING}]")).await;
        assert_eq!(outline(&answer), json!([null, -32600]), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("2025-06-18"), "{answer}");
        assert_eq!(outline(&client.ask(PING).await), json!(["p", null]));
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_passed_over() {
    let mut client = Client::of_version("2025-03-26").await;
    let mut line = vec![b' '; LINE_BYTES_MAX];
    line.push(b'\n');
    client.lines.write_all(&line).await.unwrap();
    let answer = client.ask("{x").await;
    assert_eq!(outline(&answer), json!([null, -32600]), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("16777216 bytes"), "{answer}");
}

#[tokio::test]
async fn a_conversation_may_begin_with_a_mistake() {
    let mut client = Client::connect();
    assert_eq!(outline(&client.ask("{not json").await), json!([null, -32700]));
    client.initialize("2025-03-26").await;
}
