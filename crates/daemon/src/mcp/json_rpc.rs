//! JSON-RPC 2.0 around the messages of the protocol: what is malformed is answered with an error
//! that has a code and, where it can be read, the request's id, so that no client waits for ever;
//! batches are taken apart. rmcp, which reads the messages themselves, does neither.

use prime_problems::lossy;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ProtocolVersion};
use serde_json::{Map, Value, json};

/// Most messages of a batch. All of them are one request to the limits of a key.
pub const BATCH_MAX: usize = 50;

/// A message, or why it is invalid.
#[derive(Debug)]
pub enum Message {
    /// A request (with its id), a notification or a response.
    Valid { id: Option<Value>, value: Value, parsed: Box<ClientJsonRpcMessage> },
    /// The error that answers it.
    Refused(Value),
    /// A response that cannot be read. It is not answered: two sides that answer each other's
    /// errors would not end.
    Ignored,
}

/// What came in one body or line.
#[derive(Debug)]
pub enum Received {
    One(Message),
    /// At least one.
    Batch(Vec<Message>),
}

/// True if batches are part of a version of the protocol: 2025-06-18 removed them.
pub fn takes_batches(version: &str) -> bool {
    version <= ProtocolVersion::V_2025_03_26.as_str()
}

/// An error response.
pub fn error(code: ErrorCode, id: Option<&Value>, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id.cloned().unwrap_or(Value::Null),
        "error": {"code": code.0, "message": message},
    })
}

/// Refuses a text that would lose something when parsed: digits of an integer, or one of two fields
/// with the same name.
pub fn lossy_refused(text: &[u8]) -> Option<Value> {
    let lost = std::str::from_utf8(text).ok().and_then(lossy)?;
    let id = serde_json::from_slice::<Value>(text).ok().map(|message| message["id"].clone());
    let id = id.filter(|id| !id.is_null());
    let message = match lost.path.as_str() {
        "" => lost.to_string(),
        path => format!("at {path}: {lost}"),
    };
    Some(error(ErrorCode::INVALID_REQUEST, id.as_ref(), &message))
}

fn refused(code: ErrorCode, id: Option<&Value>, message: &str) -> Message {
    Message::Refused(error(code, id, message))
}

fn invalid(id: Option<&Value>, message: &str) -> Message {
    refused(ErrorCode::INVALID_REQUEST, id, message)
}

/// Reads a body or a line.
pub fn read(text: &[u8], takes_batches: bool) -> Received {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Received::One(refused(ErrorCode::PARSE_ERROR, None, &message));
        }
    };

    let Value::Array(batch) = value else { return Received::One(message(value)) };
    if !takes_batches {
        return Received::One(invalid(
            None,
            "batches are not part of this version of the protocol (2025-06-18 removed them): send each message by itself",
        ));
    }
    if batch.is_empty() {
        return Received::One(invalid(None, "the batch is empty"));
    }
    if batch.len() > BATCH_MAX {
        let message = format!("the batch has {} messages, more than {BATCH_MAX}", batch.len());
        return Received::One(invalid(None, &message));
    }
    Received::Batch(batch.into_iter().map(in_batch).collect())
}

fn in_batch(value: Value) -> Message {
    match message(value) {
        Message::Valid { id, value, .. } if value["method"] == "initialize" => {
            invalid(id.as_ref(), "`initialize` must not be part of a batch")
        }
        message => message,
    }
}

fn message(value: Value) -> Message {
    let Value::Object(fields) = &value else {
        return invalid(None, "the message is not a JSON object");
    };
    let id = fields.get("id").filter(|id| is_id(id)).cloned();

    let is_response = !fields.contains_key("method")
        && (fields.contains_key("result") || fields.contains_key("error"));
    match check(fields) {
        Ok(()) => match serde_json::from_value::<ClientJsonRpcMessage>(value.clone()) {
            Ok(parsed) => {
                Message::Valid { id: id.filter(|_| !is_response), value, parsed: Box::new(parsed) }
            }
            Err(_) if is_response => Message::Ignored,
            Err(error) => invalid(id.as_ref(), &format!("the message cannot be read: {error}")),
        },
        Err(_) if is_response => Message::Ignored,
        Err(reason) => invalid(id.as_ref(), reason),
    }
}

/// True if a value may be the id of a request: the protocol forbids null, and JSON-RPC fractions.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

fn check(fields: &Map<String, Value>) -> Result<(), &'static str> {
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err("`jsonrpc` must be \"2.0\"");
    }
    if fields.get("id").is_some_and(|id| !is_id(id)) {
        return Err("`id` must be a string or an integer of 64 bits");
    }
    if fields.contains_key("result") || fields.contains_key("error") {
        return Ok(());
    }
    if !fields.get("method").is_some_and(Value::is_string) {
        return Err("`method` must be a string");
    }
    if fields.get("params").is_some_and(|params| !params.is_object()) {
        return Err("`params` must be an object");
    }
    Ok(())
}
