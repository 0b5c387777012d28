//! What came of one attempt that failed: its kind, the words for people, and whether another attempt may do better.

use std::time::Duration;

use reqwest::StatusCode;

use crate::agents::Failure;

/// Longest part of a server's own words that is shown, in characters.
const WORDS_MAX: usize = 200;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub failure: Failure,
    /// What happened and what to do.
    pub reason: String,
    /// Whether the pool tries again.
    pub is_retried: bool,
    /// Whether it counts against the server. One that refuses, or asks for fewer requests, is there.
    pub is_fault: bool,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// A fault of the server or of the way to it, after which the pool tries again.
    pub fn passing(failure: Failure, reason: impl Into<String>) -> Self {
        Self { failure, reason: reason.into(), is_retried: true, is_fault: true, retry_after: None }
    }

    /// A fault that would come again.
    pub fn lasting(failure: Failure, reason: impl Into<String>) -> Self {
        Self { is_retried: false, ..Self::passing(failure, reason) }
    }

    /// What a status other than success means; `words` are the server's, already fit to be shown.
    pub fn of_status(status: StatusCode, words: &str, retry_after: Option<Duration>) -> Self {
        let code = status.as_u16();
        let (failure, is_retried, advice) = match code {
            408 => (Failure::Timeout, true, "it had not read the request in time"),
            429 => (Failure::Overloaded, true, "lower `concurrent_max`, or wait"),
            503 => (Failure::Overloaded, true, "it is starting or has too much to do; if it stays so, see its log"),
            500 | 502 | 504 => (Failure::ServerError, true, "see its log"),
            500.. => (Failure::ServerError, false, "see its log"),
            300..400 => {
                (Failure::Refused, false, "it points elsewhere, which is not followed: set `url` to its target")
            }
            401 | 403 => (Failure::Refused, false, "check the key in the variable that `api_key_env` names"),
            404 | 405 => (Failure::Refused, false, "check `url`, `model` and `api`"),
            400 | 422 => (Failure::Refused, false, "check `model`, `dialect` and `extra`"),
            _ => (Failure::Refused, false, "check `url` and `model`"),
        };
        let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let reason = format!("status {code}{words}: {advice}");
        Self { failure, reason, is_retried, is_fault: failure != Failure::Refused && code != 429, retry_after }
    }
}

/// A server's words on one line, with the key taken out before they are cut.
pub(super) fn shown(words: &str, key: Option<&str>) -> String {
    let words = match key {
        Some(key) => words.replace(key, "[key]"),
        None => words.to_owned(),
    };
    let line = words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(WORDS_MAX).collect();
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
        for (code, failure, is_retried, is_fault) in kinds {
            let problem = Problem::of_status(StatusCode::from_u16(code).unwrap(), "so it says", None);
            assert_eq!(
                (problem.failure, problem.is_retried, problem.is_fault),
                (failure, is_retried, is_fault),
                "{code}"
            );
            assert!(problem.reason.starts_with(&format!("status {code} (so it says): ")), "{}", problem.reason);
        }
    }

    #[test]
    fn words_are_shown_on_one_short_line_without_the_key() {
        assert_eq!(shown(" wrong\r\n\tkey:\u{1b}[31m abc-123! ", Some("abc-123")), "wrong key: [31m [key]!");
        assert_eq!(shown("ünfit", None), "ünfit");
        let long = shown(&format!("{}abc-123", "ä".repeat(197)), Some("abc-123"));
        assert_eq!(
            long,
            format!("{}[ke…", "ä".repeat(197)),
            "the key goes before the cut, which could hide half of it"
        );
    }
}
