//! Why an answer has no text although the server calls it one. Pure.

use serde_json::Value;

/// Why a message has no text. What a model wrote is not sanitised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Withheld {
    #[error(
        "the model called the tool {0:?} instead of answering: no tool was offered, so switch off \
         the server's tools, or its parser of tool calls"
    )]
    ToolCall(String),
    #[error("the model refused to answer: {0}")]
    Refusal(String),
    #[error("the server's content filter withheld the answer")]
    Filtered,
}

impl Withheld {
    /// The same, with the model's words cleaned.
    pub fn sanitized(&self, clean: impl Fn(&str) -> String) -> Self {
        match self {
            Self::ToolCall(name) => Self::ToolCall(clean(name)),
            Self::Refusal(words) => Self::Refusal(clean(words)),
            Self::Filtered => Self::Filtered,
        }
    }
}

/// Why a message without a text has none, where the server says so.
pub(super) fn withheld(choice: &Value) -> Option<Withheld> {
    let message = choice.get("message").unwrap_or(choice);
    if let Some(refusal) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        return Some(Withheld::Refusal(refusal.to_owned()));
    }
    if let Some(call) = message.pointer("/tool_calls/0") {
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or("?");
        return Some(Withheld::ToolCall(name.to_owned()));
    }
    (choice["finish_reason"] == "content_filter").then_some(Withheld::Filtered)
}
