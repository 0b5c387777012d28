//! How lists name a run.

use std::io::{self, Write};

use serde_json::Value;

use crate::requests::OWN_INPUT;
use prime_printable::is_escaped;
use prime_problems::SPEC;

/// Maximum characters of a title that is made of an input.
const CHARACTERS_MAX: usize = 60;
/// Bytes of an input that are written for it: one character has at most four.
const BYTES_MAX: usize = 4 * CHARACTERS_MAX + 4;

/// The first bytes of what is written; then it fails, so that a long input is not written in full.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BYTES_MAX - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let written = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text on one line, without control and direction characters, and cut.
fn short(text: &str) -> String {
    let plain = text.replace(|c: char| c.is_whitespace() || is_escaped(c), " ");
    let mut rest = plain.trim().char_indices();
    match rest.nth(CHARACTERS_MAX) {
        Some(_) => plain.trim().chars().take(CHARACTERS_MAX - 1).chain(['…']).collect(),
        None => plain.trim().to_owned(),
    }
}

/// The beginning of a value as compact JSON.
fn compact(value: &Value) -> String {
    let mut beginning = Beginning(Vec::new());
    // It fails where the value is longer.
    let _ = serde_json::to_writer(&mut beginning, value);
    String::from_utf8_lossy(&beginning.0).into_owned()
}

/// The name of the instance; for an input that came with the request, its beginning, and for a
/// custom problem without an input, that of its statement.
pub(super) fn title_of(task: &str, instance: &str, input: &Value) -> String {
    if instance != OWN_INPUT {
        return instance.to_owned();
    }
    if task != SPEC.slug {
        return short(&compact(input));
    }
    match &input["input"] {
        Value::Null => {}
        Value::Object(fields) if fields.is_empty() => {}
        given => return short(&compact(given)),
    }
    short(input["statement"].as_str().unwrap_or(instance))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_own_input_is_named_by_its_beginning() {
        let of = |input: Value| title_of("bubble-sort", "input", &input);
        assert_eq!(
            title_of("bubble-sort", "bubble-sort/easy/003", &json!({})),
            "bubble-sort/easy/003"
        );
        assert_eq!(of(json!({"a": [3, 1, "é"]})), r#"{"a":[3,1,"é"]}"#);
        assert_eq!(of(json!("a\u{202e}b \u{9b}31m")), r#""a b  31m""#);
        assert_eq!(of(json!(null)), "null");

        let long = of(json!({"text": "é".repeat(100_000)}));
        assert_eq!(long, format!("{{\"text\":\"{}…", "é".repeat(50)));
        assert_eq!(long.chars().count(), 60);
        assert_eq!(of(json!("x".repeat(58))), format!("\"{}\"", "x".repeat(58)));
    }

    #[test]
    fn a_custom_problem_is_named_by_its_input_or_its_statement() {
        let of = |input: Value| {
            title_of("problem", "input", &json!({"statement": " Which\nof them? ", "input": input}))
        };
        assert_eq!(of(json!({"of": [3, 5]})), r#"{"of":[3,5]}"#);
        assert_eq!(of(json!({})), "Which of them?");
        assert_eq!(of(json!(null)), "Which of them?");
        assert_eq!(of(json!(7)), "7");
    }
}
