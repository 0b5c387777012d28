//! The progress of a turn, as its caller sees it while it waits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Most bytes of an unfinished text that are reported: its end, which is what a reader watches.
#[cfg(any(feature = "llama", test))]
const TEXT_BYTES_MAX: usize = 4096;

/// The progress of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The text so far, or its last 4,096 bytes; invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that are computed or were cached.
    pub prompt_computed: u32,
}

/// Receives the progress of a turn at most five times a second, on the engine's pump thread. It
/// should only pass the progress on.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// What a caller wants to know about its request besides the answer.
#[derive(Clone, Default)]
pub struct Following {
    /// Receives its progress: before the worker computes a long prompt, and from 200 ms after the
    /// request has begun.
    pub watch: Option<Watch>,
    /// True if the answer comes with what was sent to the model.
    pub with_sent: bool,
}

/// The end of a text, at most [`TEXT_BYTES_MAX`] of it. A character that is still incomplete is
/// left out.
#[cfg(any(feature = "llama", test))]
pub(super) fn end_of(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(TEXT_BYTES_MAX);
    // Bytes that continue a character whose beginning is cut off.
    let begins = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let start = if start == 0 {
        0
    } else {
        start + bytes[start..].iter().take(4).position(begins).unwrap_or(0)
    };

    let mut text = String::new();
    let mut chunks = bytes[start..].utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text += chunk.valid();
        let is_incomplete = chunks.peek().is_none()
            && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if !chunk.invalid().is_empty() && !is_incomplete {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_told_once_it_is_complete() {
        assert_eq!(end_of(b"place 3"), "place 3");
        assert_eq!(end_of("n\u{e9}e".as_bytes()), "n\u{e9}e");
        assert_eq!(end_of(b"n\xc3"), "n");
        assert_eq!(end_of(b"n\xc3e\xff"), "n\u{fffd}e\u{fffd}");
    }

    #[test]
    fn of_a_long_text_the_end_is_told() {
        // 3 bytes each: the cut falls into a character.
        let text = "\u{20ac}".repeat(2000);
        let told = end_of(text.as_bytes());
        assert_eq!(told, "\u{20ac}".repeat(1365));

        assert_eq!(end_of("x".repeat(4096).as_bytes()), "x".repeat(4096));
        assert_eq!(end_of("x".repeat(4097).as_bytes()), "x".repeat(4096));
    }
}
