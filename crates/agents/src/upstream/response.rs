//! Parses a server's response into a completion. Fields that only some servers send may be missing;
//! a missing required field is named. Pure.

use std::sync::Arc;

use serde_json::Value;

use crate::model::Completion;
use prime_protocol::Usage;

/// Why a response is not a completion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResponseError {
    #[error("empty response")]
    Empty,
    #[error("response is not JSON, at byte {0}")]
    NotJson(usize),
    /// The server's message, not sanitised.
    #[error("error in a response with status 200: {0}")]
    Error(String),
    #[error("response without `choices[0]`")]
    NoChoice,
    #[error(
        "response without text in `choices[0]`: if the model only produced reasoning, disable \
         that in `extra`"
    )]
    NoText,
    #[error("response without a number in `{0}`: does the server run a reward model?")]
    NoScore(&'static str),
    #[error("response with {0} scores for one text")]
    Scores(usize),
    #[error("response with {0} values for one text: a reward model's score has one")]
    Values(usize),
}

/// The JSON of a response body, which is no error.
pub(super) fn answer(body: &[u8]) -> Result<Value, ResponseError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(ResponseError::Empty);
    }

    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| ResponseError::NotJson(offset(body, &error)))?;

    match answer.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(ResponseError::Error(message(error))),
        None => Ok(answer),
    }
}

/// The tokens that a response says it took.
pub(super) fn usage(answer: &Value) -> Usage {
    let count = |name: &str| whole(&answer["usage"][name]).unwrap_or(0);
    Usage { prompt: count("prompt_tokens"), completion: count("completion_tokens") }
}

/// Parses a response body.
pub(super) fn completion(body: &[u8], source: &Arc<str>) -> Result<Completion, ResponseError> {
    let answer = answer(body)?;
    let choice = answer.pointer("/choices/0").ok_or(ResponseError::NoChoice)?;
    let is_truncated = choice["finish_reason"] == "length";
    let content = choice.pointer("/message/content").or_else(|| choice.get("text"));

    let text = match content.and_then(text_of) {
        Some(text) => text,
        // All tokens went into reasoning.
        None if is_truncated => String::new(),
        None => return Err(ResponseError::NoText),
    };

    Ok(Completion {
        text,
        usage: usage(&answer),
        tokens: tokens(choice).unwrap_or_default(),
        logprobs: logprobs(choice).unwrap_or_default(),
        alternatives: alternatives(choice).unwrap_or_default(),
        is_truncated,
        source: Some(Arc::clone(source)),
        ..Completion::default()
    })
}

/// The text of a content: a text, or a list of parts, of which those of type `text` count and the
/// others, such as `thinking`, do not. `None` if there is none.
fn text_of(content: &Value) -> Option<String> {
    let parts = match content {
        Value::String(text) => return Some(text.clone()),
        Value::Array(parts) => parts,
        _ => return None,
    };
    let texts = parts.iter().filter(|part| part["type"] == "text");
    // Without any, `None`.
    texts
        .filter_map(|part| part["text"].as_str())
        .map(str::to_owned)
        .reduce(|all, text| all + &text)
}

/// A count: some servers write the integer 12 as `12.0`, which JSON does not tell apart.
fn whole(value: &Value) -> Option<u64> {
    /// 2^53: from here on a float may stand for several integers.
    const INEXACT_FROM: f64 = 9_007_199_254_740_992.0;

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is exact")]
    let of_float = |float: f64| {
        let is_count = float.fract() == 0.0 && (0.0..INEXACT_FROM).contains(&float);
        is_count.then_some(float as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(of_float))
}

/// The message of an error response: `{"error": {"message": …}}`, one of its variants, or the whole
/// body.
pub(super) fn error_message(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(answer) => message(answer.get("error").unwrap_or(&answer)),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

fn message(error: &Value) -> String {
    let named = ["message", "detail"].into_iter().find_map(|name| error.get(name));
    match named.unwrap_or(error) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Log-probabilities: `content[].logprob` (chat, llama-server) or `token_logprobs` (completions).
/// `None` if any is missing.
fn logprobs(choice: &Value) -> Option<Vec<f32>> {
    let logprobs = choice.get("logprobs")?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "log-probabilities are kept in single precision"
    )]
    let number = |value: &Value| value.as_f64().map(|number| number as f32);
    match logprobs.get("content").and_then(Value::as_array) {
        Some(entries) => entries.iter().map(|entry| number(&entry["logprob"])).collect(),
        None => logprobs.get("token_logprobs")?.as_array()?.iter().map(number).collect(),
    }
}

/// Likely first tokens: `content[0].top_logprobs`, a list (chat, llama-server), or
/// `top_logprobs[0]`, an object (completions). `None` if any is malformed.
fn alternatives(choice: &Value) -> Option<Vec<(String, f32)>> {
    #[expect(clippy::cast_possible_truncation, reason = "as above")]
    let number = |value: &Value| value.as_f64().map(|number| number as f32);
    let logprobs = choice.get("logprobs")?;
    if let Some(list) = logprobs.pointer("/content/0/top_logprobs").and_then(Value::as_array) {
        let one =
            |entry: &Value| Some((entry["token"].as_str()?.to_owned(), number(&entry["logprob"])?));
        return list.iter().map(one).collect();
    }
    let object = logprobs.pointer("/top_logprobs/0")?.as_object()?;
    object.iter().map(|(token, logprob)| Some((token.clone(), number(logprob)?))).collect()
}

/// Token ids: `token_ids` (vLLM) or `content[].id` (llama-server). `None` if any is missing.
fn tokens(choice: &Value) -> Option<Vec<u32>> {
    let number = |value: &Value| whole(value).and_then(|number| u32::try_from(number).ok());
    match choice.get("token_ids").and_then(Value::as_array) {
        Some(ids) => ids.iter().map(number).collect(),
        None => choice
            .pointer("/logprobs/content")?
            .as_array()?
            .iter()
            .map(|entry| number(&entry["id"]))
            .collect(),
    }
}

/// The byte offset of a JSON error.
fn offset(body: &[u8], error: &serde_json::Error) -> usize {
    let lines = body.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    lines.map(<[u8]>::len).sum::<usize>() + error.column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(answer: &Value) -> Result<Completion, ResponseError> {
        completion(answer.to_string().as_bytes(), &"s".into())
    }

    #[test]
    fn a_chat_of_llama_server_has_its_tokens_in_the_logprobs() {
        let found = read(&json!({
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "move 1"},
                "logprobs": {"content": [{"id": 71, "token": "move", "logprob": -0.25}, {"id": 9, "logprob": -3}]}}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14},
        }));
        let expected = Completion {
            text: "move 1".to_owned(),
            usage: Usage { prompt: 12, completion: 2 },
            tokens: vec![71, 9],
            logprobs: vec![-0.25, -3.0],
            source: Some("s".into()),
            ..Completion::default()
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn content_may_be_a_list_of_parts() {
        let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
        let text = |text: &str| json!({"type": "text", "text": text});
        for (content, expected) in [
            (json!([text("move 1 0 2")]), Some("move 1 0 2")),
            (
                json!([thinking, text("move "), {"type": "image"}, text("1 0 2")]),
                Some("move 1 0 2"),
            ),
            (json!([text("")]), Some("")),
            (json!([thinking]), None),
            (json!([]), None),
            (json!(["move", {"text": "1"}, {"type": "text", "text": 3}]), None),
            (json!({"type": "text", "text": "move"}), None),
        ] {
            let found = read(&json!({"choices": [{"message": {"content": content}}]}));
            let expected = expected.map(str::to_owned).ok_or(ResponseError::NoText);
            assert_eq!(found.map(|found| found.text), expected, "{content}");
        }
    }

    #[test]
    fn counts_may_be_floats_without_a_fraction() {
        for (count, expected) in [
            (json!(12), 12),
            (json!(12.0), 12),
            (json!(1.2e1), 12),
            (json!(0.0), 0),
            (json!(9_007_199_254_740_991.0), 9_007_199_254_740_991),
            (json!(9_007_199_254_740_992.0), 0),
            (json!(12.5), 0),
            (json!(-1.0), 0),
            (json!(-1), 0),
            (json!(null), 0),
            (json!("12"), 0),
        ] {
            let found = read(&json!({
                "choices": [{"text": "", "token_ids": [4.0, 5]}],
                "usage": {"prompt_tokens": count, "completion_tokens": 3.0},
            }))
            .unwrap();
            assert_eq!(found.usage, Usage { prompt: expected, completion: 3 }, "{count}");
            assert_eq!(found.tokens, [4, 5]);
        }
    }

    #[test]
    fn a_completion_of_vllm_has_lists() {
        let found = read(&json!({
            "choices": [{"text": "a b", "finish_reason": "length", "token_ids": [4, 5],
                "logprobs": {"token_logprobs": [-0.5, -1.5], "tokens": ["a", " b"]}}],
        }))
        .unwrap();
        assert_eq!(
            (found.text.as_str(), found.is_truncated, found.usage),
            ("a b", true, Usage::default())
        );
        assert_eq!((found.tokens, found.logprobs), (vec![4, 5], vec![-0.5, -1.5]));
    }

    #[test]
    fn malformed_optional_fields_are_dropped_and_the_text_stays() {
        for (extra, value) in [
            ("logprobs", json!(null)),
            ("logprobs", json!({"content": null})),
            ("logprobs", json!({"content": [{"logprob": "low", "id": -1}]})),
            ("logprobs", json!({"token_logprobs": [null, -1.0]})),
            ("token_ids", json!([1, "2"])),
            ("usage", json!("none")),
        ] {
            let found =
                read(&json!({"choices": [{"message": {"content": ""}, extra: value}]})).unwrap();
            assert_eq!(
                (found.text, found.tokens, found.logprobs),
                (String::new(), vec![], vec![]),
                "{extra}"
            );
        }

        let thinking =
            json!({"choices": [{"message": {"content": null}, "finish_reason": "length"}]});
        assert!(read(&thinking).unwrap().is_truncated);
    }

    #[test]
    fn invalid_responses_are_named() {
        for (body, expected) in [
            ("", ResponseError::Empty),
            (" \r\n", ResponseError::Empty),
            ("{\"choices\":\n[{", ResponseError::NotJson(14)),
            ("hello", ResponseError::NotJson(1)),
            ("{}", ResponseError::NoChoice),
            ("[]", ResponseError::NoChoice),
            ("{\"choices\":[]}", ResponseError::NoChoice),
            ("{\"choices\":[{\"message\":{\"content\":null}}]}", ResponseError::NoText),
            ("{\"error\":{\"message\":\"no slot\"}}", ResponseError::Error("no slot".to_owned())),
        ] {
            assert_eq!(completion(body.as_bytes(), &"s".into()), Err(expected), "{body}");
        }
    }

    #[test]
    fn the_message_is_found_in_every_servers_errors() {
        for (body, expected) in [
            (r#"{"error":{"message":"a","type":"b"}}"#, "a"),
            (r#"{"error":"a"}"#, "a"),
            (r#"{"object":"error","message":"a","code":400}"#, "a"),
            (r#"{"detail":[{"loc":["body"]}]}"#, r#"[{"loc":["body"]}]"#),
            ("plain words", "plain words"),
            ("", ""),
        ] {
            assert_eq!(error_message(body.as_bytes()), expected, "{body}");
        }
    }
}
