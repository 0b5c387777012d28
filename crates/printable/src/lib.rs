//! Text that a model, a server or a program wrote, made safe to show. On a terminal, control
//! characters move the cursor, set the title or write the clipboard; direction characters show a
//! text in another order than it has. They are shown as the escapes of JSON, `\u001b`, so that
//! JSON stays the same JSON.

#![warn(missing_docs)]

mod markdown;
mod writer;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

pub use markdown::markdown;
pub use writer::Printable;

/// Returns whether a character is shown as its escape: C0 and C1 controls but for newline and tab,
/// and what changes the direction or the lines of a text.
pub fn is_escaped(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of direction; separators of lines.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => c.is_control(),
    }
}

/// Writes the escape of a character of the basic plane, such as `\u009b`.
fn write_escape(out: &mut impl fmt::Write, c: char) -> fmt::Result {
    write!(out, "\\u{:04x}", u32::from(c))
}

/// A text as it may be shown.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }

    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let written = if is_escaped(c) { write_escape(&mut shown, c) } else { shown.write_char(c) };
        written.expect("invariant: writing to a string succeeds");
    }
    Cow::Owned(shown)
}

/// The text on one line, for a status line or a table: newlines and tabs are escaped as well.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    match printable(text) {
        shown if !shown.contains(['\n', '\t']) => shown,
        shown => Cow::Owned(shown.replace('\n', "\\n").replace('\t', "\\t")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_moves_a_cursor_or_turns_a_text_round_is_escaped() {
        for (written, shown) in [
            ("a\tb\nc é 漢 🙂", "a\tb\nc é 漢 🙂"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u001b]52;c;aGk=\\u0007"),
            ("\u{1b}[2J\r", "\\u001b[2J\\u000d"),
            ("\u{9b}31m\u{85}", "\\u009b31m\\u0085"),
            ("\u{202e}cba\u{2069}\u{61c}", "\\u202ecba\\u2069\\u061c"),
            ("\u{7f}\0", "\\u007f\\u0000"),
        ] {
            assert_eq!(printable(written), shown);
        }
        assert_eq!(printable_line("a\n\u{1b}b\t"), "a\\n\\u001bb\\t");
    }

    proptest! {
        #[test]
        fn nothing_that_is_escaped_is_left(text in any::<String>()) {
            prop_assert!(!printable(&text).contains(is_escaped));
            prop_assert!(!printable_line(&text).contains(['\n', '\t']));
        }
    }
}
