//! Fields of requests that a pool's servers refuse and that a request can do without. Pure.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

/// Fields that a request can do without: a server that refuses one is asked again without it.
/// Fields that constrain the answer are not among them, because their loss would go unnoticed.
const DISPENSABLE: [&str; 12] = [
    "temperature",
    "top_p",
    "seed",
    "logprobs",
    "top_logprobs",
    "return_token_ids",
    "stream_options",
    "stream",
    "reasoning_effort",
    "chat_template_kwargs",
    "reasoning_budget_tokens",
    "thinking_token_budget",
];

/// The two names of the limit of tokens.
pub(super) const LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Words with which servers refuse a field.
const REFUSALS: [&str; 9] = [
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
];

/// Fields that the servers of a pool have refused, remembered as long as it is open.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<BTreeSet<&'static str>>);

impl Refused {
    /// Returns whether the field has been refused.
    pub fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Remembers a field; returns whether it was new.
    pub fn add(&self, name: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name)
    }
}

/// The field of a request that an error of status 400 or 422 refuses, if the request can do without
/// it: the one in the `param` of the error's body, else one that its message names.
pub(super) fn refused_field(
    (said, error): (&str, &[u8]),
    sent: &Value,
    extra: &Map<String, Value>,
) -> Option<&'static str> {
    let lower = said.to_lowercase();
    if !REFUSALS.iter().any(|words| lower.contains(words)) {
        return None;
    }

    let is_sent = |name: &&str| {
        sent.get(*name).is_some_and(|value| !value.is_null()) && !extra.contains_key(*name)
    };
    let mut fields = LIMITS.into_iter().chain(DISPENSABLE).filter(is_sent);
    let parameter = serde_json::from_slice::<Value>(error).ok();
    let parameter = parameter.as_ref().and_then(|error| error.pointer("/error/param"));
    if let Some(parameter) = parameter.and_then(Value::as_str) {
        return fields.find(|name| *name == parameter);
    }

    // A name within a longer one is another name.
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    fields.find(|name| lower.split(|c| !is_inside(c)).any(|word| word == *name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refused_field_is_recognised() {
        let error = |message: &str, parameter: &str| {
            json!({"error": {"message": message, "param": parameter}}).to_string()
        };
        let hosted = error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
            "max_tokens",
        );
        // The parameter decides, not what else the message names.
        let value = error("Unsupported value beside max_tokens: only 1 is.", "temperature");
        let Value::Object(extra) = json!({"seed": 4}) else { panic!("an object") };
        let sent = json!({
            "messages": [], "max_tokens": 400, "temperature": 0.7, "top_p": 0.95, "seed": 4,
            "stream": true, "stream_options": {"include_usage": true},
        });
        for (error, expected) in [
            (hosted.as_str(), Some("max_tokens")),
            (value.as_str(), Some("temperature")),
            (r#"{"error": "unknown field `top_p`"}"#, Some("top_p")),
            (r#"{"detail": "Unrecognized: stream_options"}"#, Some("stream_options")),
            // The user's own field, one that was not sent, one that the answer depends on.
            (r#"{"error": "unknown field `seed`"}"#, None),
            (r#"{"error": "unknown field `reasoning_effort`"}"#, None),
            (r#"{"error": "unknown field `messages`"}"#, None),
            (r#"{"error": "max_tokens is too large"}"#, None),
            ("", None),
        ] {
            let found = refused_field((error, error.as_bytes()), &sent, &extra);
            assert_eq!(found, expected, "{error}");
        }
    }
}
