//! JSON objects within prose.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::line::trimmed;

/// Candidates for an answer in a text.
#[derive(Default)]
pub struct Objects {
    /// The last object that has fields.
    pub last: Option<Value>,
    /// True if there is an object without fields.
    pub has_empty: bool,
    /// True if, after that, something begins like an object with fields but is not one.
    pub is_broken_after: bool,
}

/// Returns whether a text begins like an object with a field.
fn begins_like_object(text: &str) -> bool {
    static FIELD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^\{\s{0,80}["'“”][^"'“”\n]{0,80}["'“”]\s{0,8}:"#)
            .expect("invariant: the pattern is right, as every test shows")
    });
    FIELD.is_match(text)
}

/// The end, by its braces, of the object that a text begins with; `None` if it is cut off.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' if !in_text => depth += 1,
            b'}' if !in_text => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether JSON could not be read because it is nested deeper than serde_json's 128 levels,
/// half of which may be arrays.
fn is_too_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

/// The whole text as an object.
pub fn object(text: &str) -> Option<Value> {
    serde_json::from_str(trimmed(text)).ok().filter(Value::is_object)
}

/// The objects of a text, from left to right.
pub fn objects(text: &str) -> Objects {
    /// Objects without an end that are looked at: each is read to the end of the text, which must
    /// not take quadratic time.
    const TRIES: usize = 64;
    /// Opening braces that are passed over after one beyond which the nesting is too deep.
    const SKIPPED_LEVELS: usize = 48;

    let mut found = Objects::default();
    let (mut at, mut tries) = (0, 0);
    while let Some(open) = text[at..].find('{') {
        let rest = &text[at + open..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let error = match values.next() {
            Some(Ok(value)) => {
                if value.as_object().is_some_and(|fields| !fields.is_empty()) {
                    (found.last, found.is_broken_after) = (Some(value), false);
                } else {
                    found.has_empty = true;
                }
                at += open + values.byte_offset();
                continue;
            }
            Some(Err(error)) => Some(error),
            None => None,
        };

        let mut skipped = 1;
        if tries < TRIES && begins_like_object(rest) {
            // A value inside an object that cannot be read is not an answer either.
            if let Some(end) = balanced(rest) {
                (found.is_broken_after, skipped) = (true, end);
            } else {
                tries += 1;
                found.is_broken_after |= found.last.is_none();
            }
        }
        // Text that is nested too deep to be read is still too deep at the next braces.
        if skipped == 1 && error.is_some_and(|error| is_too_deep(&error)) {
            skipped = rest.match_indices('{').nth(SKIPPED_LEVELS).map_or(rest.len(), |(at, _)| at);
        }
        at += open + skipped;
    }
    found
}
