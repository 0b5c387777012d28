//! Parses a server's response into a completion. Fields that only some servers send may be missing;
//! a missing required field is named. Pure.

use std::sync::Arc;

use serde_json::Value;

use super::request::ACTION;
use super::usage::{usage, whole};
use super::withheld::{Withheld, withheld};
use crate::model::Completion;
use crate::thought::{estimated_tokens, only_thought};
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
    #[error("response without text in `choices[0]`")]
    NoText,
    #[error("{reason}")]
    Withheld { reason: Withheld, usage: Usage },
    /// What the answer cost, and whether it was cut off.
    #[error("{}", only_thought(.usage.completion, *.is_truncated))]
    ReasoningOnly { usage: Usage, is_truncated: bool },
    /// The tokens that arrived.
    #[error("the stream broke off before its end, after {0} tokens")]
    HalfStream(u64),
    /// The parts that arrived.
    #[error(
        "the stream has {0} parts, which is more than its tokens: the server does not stop at \
         `max_tokens`"
    )]
    Endless(u64),
    #[error("response without a number in `{0}`: does the server run a reward model?")]
    NoScore(&'static str),
    #[error("response with {0} scores for one text")]
    Scores(usize),
    #[error("response with {0} values for one text: a reward model's score has one")]
    Values(usize),
}

/// The JSON of a response body, which is not an error.
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

/// The thinking of a message, and what it says besides. Thinking is in fields of its own, in parts
/// of the content, or between marks.
fn thought_and_said(choice: &Value) -> (String, Option<String>) {
    let message = choice.get("message").unwrap_or(choice);
    let content = message.get("content").or_else(|| choice.get("text"));
    let fields = ["reasoning_content", "reasoning"].iter().find_map(|name| {
        message[*name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    });
    let mut thought = fields.unwrap_or_else(|| content.map(thinking_of).unwrap_or_default());

    let Some(text) = content.and_then(text_of) else { return (thought, None) };
    let split = prime_reasoning::split(&text);
    if split.thought.is_empty() {
        return (thought, Some(split.said.into_owned()));
    }
    if !thought.is_empty() {
        thought.push_str("\n\n");
    }
    thought.push_str(&split.thought);
    let said = split.said.trim().to_owned();
    (thought, Some(said))
}

/// The action in an answer that has the form of the schema that was asked for.
fn action_in(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text.trim()).ok()?;
    answer.as_object()?.get(ACTION)?.as_str().map(str::to_owned)
}

/// Reads an answer; `has_schema` says whether it was asked to be an object with an action, and
/// `prompt_bytes` how long the prompt is, from which its tokens are estimated if the server does
/// not count them.
pub(super) fn completion(
    answer: &Value,
    has_schema: bool,
    prompt_bytes: usize,
    source: &Arc<str>,
) -> Result<Completion, ResponseError> {
    let choice = answer.pointer("/choices/0").ok_or(ResponseError::NoChoice)?;
    let is_truncated = choice["finish_reason"] == "length";
    let mut usage = usage(answer, prompt_bytes);

    let (mut reasoning, said) = thought_and_said(choice);
    let has_said = said.as_ref().is_some_and(|said| !said.trim().is_empty());
    let has_thought = !reasoning.is_empty() || usage.reasoning > 0;

    if let Some(reason) = withheld(choice).filter(|_| !has_said) {
        return Err(ResponseError::Withheld { reason, usage });
    }
    let text = match said {
        // Some servers hold the thinking to the schema, and stop when it fits.
        _ if !has_said && has_schema && action_in(&reasoning).is_some() => {
            action_in(&std::mem::take(&mut reasoning)).unwrap_or_default()
        }
        Some(said) if has_said || !has_thought => {
            if has_schema {
                action_in(&said).unwrap_or(said)
            } else {
                said
            }
        }
        // All tokens went into thinking, whether it is shown or not.
        _ if has_thought || is_truncated => {
            usage.reasoning = usage.completion;
            return Err(ResponseError::ReasoningOnly { usage, is_truncated });
        }
        _ => return Err(ResponseError::NoText),
    };
    if usage.reasoning == 0 {
        usage.reasoning = estimated_tokens(usage.completion, &reasoning, &text);
    }

    Ok(Completion {
        text,
        reasoning,
        usage,
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
    // `None` if there are no parts of text.
    texts
        .filter_map(|part| part["text"].as_str())
        .map(str::to_owned)
        .reduce(|all, text| all + &text)
}

/// The thinking in a content that is a list of parts.
fn thinking_of(content: &Value) -> String {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let thinking = parts.iter().filter(|part| part["type"] == "thinking");
    let texts = thinking.filter_map(|part| match &part["thinking"] {
        Value::String(text) => Some(text.clone()),
        nested => text_of(nested),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The model that an answer names, if it is not the one that was asked for. Dated versions and
/// paths of a model count as the same model; `default` asks for any that is loaded.
pub(super) fn other_model<'a>(answer: &'a Value, asked: &str) -> Option<&'a str> {
    let named = answer["model"].as_str().filter(|name| !name.is_empty())?;
    let plain = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let (said, asked) = (plain(named), plain(asked));
    let is_same = asked == "default" || said.contains(&asked) || asked.contains(&said);
    (!is_same).then_some(named)
}

/// The message of an error response: `{"error": {"message": …}}`, one of its variants, or the whole
/// body.
pub(super) fn error_message(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(answer) => message(answer.get("error").unwrap_or(&answer)),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

pub(super) fn message(error: &Value) -> String {
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
        completion(answer, false, 40, &"s".into())
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
            usage: Usage::new(12, 2),
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
    fn a_completion_of_vllm_has_lists() {
        let found = read(&json!({
            "choices": [{"text": "a b", "finish_reason": "length", "token_ids": [4, 5],
                "logprobs": {"token_logprobs": [-0.5, -1.5], "tokens": ["a", " b"]}}],
        }))
        .unwrap();
        assert_eq!(
            (found.text.as_str(), found.is_truncated, found.usage),
            ("a b", true, Usage::new(10, 2))
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
    }

    #[test]
    fn thinking_is_told_apart_in_every_form() {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 40});
        for message in [
            json!({"content": "move 1 0 2", "reasoning_content": "hm"}),
            json!({"content": "move 1 0 2", "reasoning": "hm"}),
            json!({"content": "<think>\nhm\n</think>\n\nmove 1 0 2"}),
            json!({"content": "[THINK]hm[/THINK]move 1 0 2"}),
            json!({"content": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant\
                               <|channel|>final<|message|>move 1 0 2"}),
            json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "move 1 0 2"},
            ]}),
        ] {
            let found = read(&json!({"choices": [{"message": message}], "usage": usage})).unwrap();
            assert_eq!((found.text.as_str(), found.reasoning.as_str()), ("move 1 0 2", "hm"));
            // 2 of 12 characters.
            assert_eq!(found.usage, Usage { reasoning: 6, ..Usage::new(9, 40) }, "{message}");
        }

        let said = json!({
            "choices": [{"message": {"content": "a", "reasoning": "hm"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 40,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 30}},
        });
        let expected = Usage { cached: 8, reasoning: 30, ..Usage::new(9, 40) };
        assert_eq!(read(&said).unwrap().usage, expected);
    }

    #[test]
    fn thinking_without_an_answer_is_an_error_with_its_tokens() {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 40});
        let hidden = json!({"prompt_tokens": 9, "completion_tokens": 40,
            "completion_tokens_details": {"reasoning_tokens": 40}});
        for (message, finish, usage) in [
            (json!({"content": null, "reasoning_content": "hm"}), "stop", &usage),
            (json!({"content": "", "reasoning": "hm"}), "length", &usage),
            (json!({"content": "<think>hm"}), "length", &usage),
            (json!({"content": "<think>hm</think>\n"}), "stop", &usage),
            (json!({"content": ""}), "length", &hidden),
            (json!({"content": null}), "length", &usage),
        ] {
            let found = read(&json!({
                "choices": [{"message": message, "finish_reason": finish}], "usage": usage,
            }));
            let usage = Usage { reasoning: 40, ..Usage::new(9, 40) };
            let is_truncated = finish == "length";
            let expected = ResponseError::ReasoningOnly { usage, is_truncated };
            assert_eq!(found, Err(expected), "{message}");
        }
    }

    #[test]
    fn an_answer_of_a_schema_is_its_action() {
        for (message, expected) in [
            (json!({"content": "{\"action\": \"move 1 0 2\"}\n"}), "move 1 0 2"),
            // A server that ignores the schema.
            (json!({"content": "move 1 0 2"}), "move 1 0 2"),
            (json!({"content": "{\"answer\": 3}"}), "{\"answer\": 3}"),
            // A server that holds the thinking to the schema.
            (json!({"content": "", "reasoning": "{\"action\": \"move 1 0 2\"}"}), "move 1 0 2"),
        ] {
            let answer = json!({"choices": [{"message": message}]});
            let found = completion(&answer, true, 40, &"s".into()).unwrap();
            assert_eq!((found.text.as_str(), found.reasoning.as_str()), (expected, ""));
        }
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
            let found = answer(body.as_bytes())
                .and_then(|answer| completion(&answer, false, 40, &"s".into()));
            assert_eq!(found, Err(expected), "{body}");
        }
    }

    #[test]
    fn an_answer_that_is_withheld_says_why() {
        let tool = json!({"content": null, "tool_calls": [{"function": {"name": "f"}}]});
        let refusal = json!({"content": "", "refusal": "no"});
        let nothing = json!({"content": ""});
        for (message, finish, reason) in [
            (tool, "tool_calls", Withheld::ToolCall("f".to_owned())),
            (refusal, "stop", Withheld::Refusal("no".to_owned())),
            (nothing, "content_filter", Withheld::Filtered),
        ] {
            let found = read(&json!({
                "choices": [{"message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 4},
            }));
            let expected = ResponseError::Withheld { reason, usage: Usage::new(9, 4) };
            assert_eq!(found, Err(expected), "{message}");
        }
        // If there is text, it counts, whatever else there is.
        let both = json!({"content": "move 1 0 2", "tool_calls": [{"function": {"name": "f"}}]});
        let found = read(&json!({"choices": [{"message": both}]}));
        assert_eq!(found.map(|found| found.text), Ok("move 1 0 2".to_owned()));
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

    #[test]
    fn another_model_is_noticed_and_another_name_of_the_same_is_not() {
        for (said, asked, is_other) in [
            ("gpt-5-mini-2026-08-07", "gpt-5-mini", false),
            ("/models/Qwen3-8B.gguf", "qwen3-8b", false),
            ("m", "org/m", false),
            ("anything.gguf", "default", false),
            ("", "m", false),
            ("quite-another-9b", "qwen3-8b", true),
        ] {
            let found = other_model(&json!({ "model": said }), asked).is_some();
            assert_eq!(found, is_other, "{said} for {asked}");
        }
        assert_eq!(other_model(&json!({}), "m"), None);
    }
}
