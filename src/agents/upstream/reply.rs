//! A reply from a server's answer. What only some servers send may be missing; what must be there is named when it is
//! not. Pure.

use std::sync::Arc;

use serde_json::Value;

use crate::agents::model::Reply;
use prime_protocol::Usage;

/// Why an answer is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("an empty answer")]
    Empty,
    #[error("an answer that is not JSON, at byte {0}")]
    NotJson(usize),
    /// The server's words, as they are.
    #[error("an error in an answer of status 200: {0}")]
    Error(String),
    #[error("an answer without `choices[0]`")]
    NoChoice,
    #[error("an answer without text in `choices[0]`: if the model only thought, switch that off in `extra`")]
    NoText,
}

/// Reads an answer.
pub(super) fn reply(body: &[u8], source: &Arc<str>) -> Result<Reply, BadAnswer> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(BadAnswer::Empty);
    }
    let answer: Value = serde_json::from_slice(body).map_err(|error| BadAnswer::NotJson(offset(body, &error)))?;
    if let Some(words) = answer.get("error").filter(|error| !error.is_null()) {
        return Err(BadAnswer::Error(message(words)));
    }
    let choice = answer.pointer("/choices/0").ok_or(BadAnswer::NoChoice)?;
    let is_cut = choice["finish_reason"] == "length";
    let text = choice.pointer("/message/content").or_else(|| choice.get("text")).and_then(Value::as_str);
    let text = match text {
        Some(text) => text.to_owned(),
        // All its tokens went into thoughts.
        None if is_cut => String::new(),
        None => return Err(BadAnswer::NoText),
    };
    let count = |name: &str| answer["usage"][name].as_u64().unwrap_or(0);
    Ok(Reply {
        text,
        usage: Usage { prompt: count("prompt_tokens"), completion: count("completion_tokens") },
        tokens: tokens(choice).unwrap_or_default(),
        logprobs: logprobs(choice).unwrap_or_default(),
        is_cut,
        source: Some(Arc::clone(source)),
    })
}

/// The words in an answer that is an error: `{"error": {"message": …}}`, one of its relatives, or all of it.
pub(super) fn words(body: &[u8]) -> String {
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

/// ln p of each token: `content[].logprob` of chats and of llama-server, `token_logprobs` of OpenAI's completions. None
/// where one is missing.
fn logprobs(choice: &Value) -> Option<Vec<f32>> {
    let logprobs = choice.get("logprobs")?;
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what is kept of it")]
    let number = |value: &Value| value.as_f64().map(|number| number as f32);
    match logprobs.get("content").and_then(Value::as_array) {
        Some(entries) => entries.iter().map(|entry| number(&entry["logprob"])).collect(),
        None => logprobs.get("token_logprobs")?.as_array()?.iter().map(number).collect(),
    }
}

/// The tokens' numbers: `token_ids` of vLLM, `content[].id` of llama-server. None where one is missing.
fn tokens(choice: &Value) -> Option<Vec<u32>> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    match choice.get("token_ids").and_then(Value::as_array) {
        Some(ids) => ids.iter().map(number).collect(),
        None => choice.pointer("/logprobs/content")?.as_array()?.iter().map(|entry| number(&entry["id"])).collect(),
    }
}

/// Where the trouble is, counted from the beginning.
fn offset(body: &[u8], error: &serde_json::Error) -> usize {
    let lines = body.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    lines.map(<[u8]>::len).sum::<usize>() + error.column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(answer: &Value) -> Result<Reply, BadAnswer> {
        reply(answer.to_string().as_bytes(), &"s".into())
    }

    #[test]
    fn a_chat_of_llama_server_has_its_tokens_in_the_logprobs() {
        let found = read(&json!({
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "move 1"},
                "logprobs": {"content": [{"id": 71, "token": "move", "logprob": -0.25}, {"id": 9, "logprob": -3}]}}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14},
        }));
        let expected = Reply {
            text: "move 1".to_owned(),
            usage: Usage { prompt: 12, completion: 2 },
            tokens: vec![71, 9],
            logprobs: vec![-0.25, -3.0],
            is_cut: false,
            source: Some("s".into()),
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn a_completion_of_vllm_has_lists() {
        let found = read(&json!({
            "choices": [{"text": "a b", "finish_reason": "length", "token_ids": [4, 5],
                "logprobs": {"token_logprobs": [-0.5, -1.5], "tokens": ["a", " b"]}}],
        }))
        .unwrap();
        assert_eq!((found.text.as_str(), found.is_cut, found.usage), ("a b", true, Usage::default()));
        assert_eq!((found.tokens, found.logprobs), (vec![4, 5], vec![-0.5, -1.5]));
    }

    #[test]
    fn odd_extras_are_left_out_and_the_text_stays() {
        for (extra, value) in [
            ("logprobs", json!(null)),
            ("logprobs", json!({"content": null})),
            ("logprobs", json!({"content": [{"logprob": "low", "id": -1}]})),
            ("logprobs", json!({"token_logprobs": [null, -1.0]})),
            ("token_ids", json!([1, "2"])),
            ("usage", json!("none")),
        ] {
            let found = read(&json!({"choices": [{"message": {"content": ""}, extra: value}]})).unwrap();
            assert_eq!((found.text, found.tokens, found.logprobs), (String::new(), vec![], vec![]), "{extra}");
        }
        let thinking = json!({"choices": [{"message": {"content": null}, "finish_reason": "length"}]});
        assert!(read(&thinking).unwrap().is_cut);
    }

    #[test]
    fn what_is_no_answer_is_named() {
        for (body, expected) in [
            ("", BadAnswer::Empty),
            (" \r\n", BadAnswer::Empty),
            ("{\"choices\":\n[{", BadAnswer::NotJson(14)),
            ("hello", BadAnswer::NotJson(1)),
            ("{}", BadAnswer::NoChoice),
            ("[]", BadAnswer::NoChoice),
            ("{\"choices\":[]}", BadAnswer::NoChoice),
            ("{\"choices\":[{\"message\":{\"content\":null}}]}", BadAnswer::NoText),
            ("{\"error\":{\"message\":\"no slot\"}}", BadAnswer::Error("no slot".to_owned())),
        ] {
            assert_eq!(reply(body.as_bytes(), &"s".into()), Err(expected), "{body}");
        }
    }

    #[test]
    fn words_are_found_in_every_servers_errors() {
        for (body, expected) in [
            (r#"{"error":{"message":"a","type":"b"}}"#, "a"),
            (r#"{"error":"a"}"#, "a"),
            (r#"{"object":"error","message":"a","code":400}"#, "a"),
            (r#"{"detail":[{"loc":["body"]}]}"#, r#"[{"loc":["body"]}]"#),
            ("plain words", "plain words"),
            ("", ""),
        ] {
            assert_eq!(words(body.as_bytes()), expected, "{body}");
        }
    }
}
