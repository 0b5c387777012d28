//! Why one attempt failed: its kind, a message, and whether a retry may help.

use std::time::Duration;

use reqwest::StatusCode;

use crate::Failure;
use prime_protocol::Usage;

/// Maximum characters of a server's own message that are quoted.
const QUOTE_CHARS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptError {
    pub failure: Failure,
    /// What happened and what to do.
    pub reason: String,
    /// True if the pool retries.
    pub is_retryable: bool,
    /// True if the circuit breaker counts it. A server that rejects a request or asks for fewer is
    /// working.
    pub is_fault: bool,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Tokens that the attempt cost nevertheless.
    pub usage: Usage,
    /// A field that the server refuses and that the request can do without.
    pub refused: Option<&'static str>,
}

impl AttemptError {
    /// A fault of the server or the network that may pass: the pool retries.
    pub fn transient(failure: Failure, reason: impl Into<String>) -> Self {
        Self {
            failure,
            reason: reason.into(),
            is_retryable: true,
            is_fault: true,
            retry_after: None,
            usage: Usage::default(),
            refused: None,
        }
    }

    /// A fault that a retry would repeat.
    pub fn permanent(failure: Failure, reason: impl Into<String>) -> Self {
        Self { is_retryable: false, ..Self::transient(failure, reason) }
    }

    /// The error for a status other than success; `message` is the server's, already sanitised.
    pub fn from_status(status: StatusCode, message: &str, retry_after: Option<Duration>) -> Self {
        let code = status.as_u16();
        let (failure, is_retryable, advice) = match code {
            400 | 413 | 422 if is_about_context(message) => (
                Failure::TooLong,
                false,
                "shorten the prompt (`history`, `prompt`), or give the model more context",
            ),
            408 => (Failure::Timeout, true, "the server did not receive the request in time"),
            429 => (Failure::Overloaded, true, "lower `concurrent_max`, or wait"),
            503 => (
                Failure::Overloaded,
                true,
                "it is starting or overloaded; if this persists, see its log",
            ),
            500 | 502 | 504 => (Failure::ServerError, true, "see its log"),
            500.. => (Failure::ServerError, false, "see its log"),
            300..400 => {
                (Failure::Refused, false, "redirects are not followed: set `url` to the target")
            }
            401 | 403 => {
                (Failure::Refused, false, "check the key in the variable that `api_key_env` names")
            }
            404 | 405 => (Failure::Refused, false, "check `url`, `model` and `api`"),
            400 | 422 => (Failure::Refused, false, "check `model`, `dialect` and `extra`"),
            _ => (Failure::Refused, false, "check `url` and `model`"),
        };

        let message = if message.is_empty() { String::new() } else { format!(" ({message})") };
        let reason = format!("status {code}{message}: {advice}");

        // 429 says that the server works: it only asks for fewer requests.
        let is_fault = !matches!(failure, Failure::Refused | Failure::TooLong) && code != 429;
        Self { is_retryable, is_fault, retry_after, ..Self::transient(failure, reason) }
    }

    /// Returns whether the turn may be tried again. A request that the server rejects as it is
    /// would be rejected again.
    pub fn is_transient(&self) -> bool {
        self.failure.is_transient() && (self.is_retryable || self.is_fault)
    }
}

/// Returns whether a server says that the prompt exceeds the model's context: OpenAI, llama-server,
/// vLLM and SGLang have no status of its own for this, and name it differently.
fn is_about_context(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["context length", "context size", "context window"].iter().any(|words| message.contains(words))
}

/// Untrusted text on one short line, with the key redacted before it is cut.
pub(super) fn sanitized(text: &str, key: Option<&str>) -> String {
    let text = match key {
        Some(key) => text.replace(key, "[key]"),
        None => text.to_owned(),
    };

    let line =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");

    let mut short: String = line.chars().take(QUOTE_CHARS_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_kind_and_only_what_may_pass_is_retried() {
        let kinds = [
            (302, Failure::Refused, false, false),
            (400, Failure::Refused, false, false),
            (401, Failure::Refused, false, false),
            (404, Failure::Refused, false, false),
            (408, Failure::Timeout, true, true),
            (422, Failure::Refused, false, false),
            (429, Failure::Overloaded, true, false),
            (500, Failure::ServerError, true, true),
            (501, Failure::ServerError, false, true),
            (502, Failure::ServerError, true, true),
            (503, Failure::Overloaded, true, true),
            (504, Failure::ServerError, true, true),
        ];
        for (code, failure, is_retryable, is_fault) in kinds {
            let error =
                AttemptError::from_status(StatusCode::from_u16(code).unwrap(), "so it says", None);
            assert_eq!(
                (error.failure, error.is_retryable, error.is_fault),
                (failure, is_retryable, is_fault),
                "{code}"
            );
            assert!(
                error.reason.starts_with(&format!("status {code} (so it says): ")),
                "{}",
                error.reason
            );
        }
    }

    #[test]
    fn a_context_that_is_exceeded_is_too_long_for_ever() {
        for (code, message) in [
            (
                400,
                "This model's maximum context length is 8192 tokens. However, you requested 9000 \
                 tokens",
            ),
            (400, "the request exceeds the available context size, try increasing it"),
            (
                400,
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            ),
            (413, "prompt is beyond the Context Window"),
        ] {
            let error =
                AttemptError::from_status(StatusCode::from_u16(code).unwrap(), message, None);
            assert_eq!(
                (error.failure, error.is_retryable, error.is_fault),
                (Failure::TooLong, false, false),
                "{message}"
            );
            assert!(
                !error.is_transient() && error.reason.contains("shorten the prompt"),
                "{}",
                error.reason
            );
        }

        let flood = AttemptError::permanent(Failure::TooLong, "response has more than 100 bytes");
        assert!(flood.is_transient(), "another answer may be shorter");
    }

    #[test]
    fn words_are_shown_on_one_short_line_without_the_key() {
        assert_eq!(
            sanitized(" wrong\r\n\tkey:\u{1b}[31m abc-123! ", Some("abc-123")),
            "wrong key: [31m [key]!"
        );
        assert_eq!(sanitized("ünfit", None), "ünfit");

        let long = sanitized(&format!("{}abc-123", "ä".repeat(197)), Some("abc-123"));
        assert_eq!(
            long,
            format!("{}[ke…", "ä".repeat(197)),
            "the key goes before the cut, which could hide half of it"
        );
    }
}
