//! Text as Markdown that shows it.

use std::borrow::Cow;

use super::printable_line;

/// A text as one line of Markdown that shows it as it is: no HTML, no link, picture or emphasis,
/// and nothing in it ends a table's cell. Safe for text from any source.
pub fn markdown(text: &str) -> Cow<'_, str> {
    let text = printable_line(text);
    let needs = |at: usize, c: char| {
        let next = text[at + c.len_utf8()..].chars().next();
        match c {
            '\\' | '`' | '*' | '[' | '|' => true,
            // Where a tag, a comment or an address begins. A comparison stays readable.
            '<' => next.is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next)),
            // Where an entity begins.
            '&' => next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '#'),
            _ => false,
        }
    };
    if !text.char_indices().any(|(at, c)| needs(at, c)) {
        return text;
    }

    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if needs(at, c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markdown() {
        for (text, shown) in [
            ("n-queens, 24_game; 3 < 4 & 5 > 4", "n-queens, 24_game; 3 < 4 & 5 > 4"),
            ("<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)>"),
            ("</td><!-- <?x <https://a>", "\\</td>\\<!-- \\<?x \\<https://a>"),
            ("a|b\nc", "a\\|b\\\\nc"),
            ("![x](http://a)", "!\\[x](http://a)"),
            ("`code` **bold**", "\\`code\\` \\*\\*bold\\*\\*"),
            ("&lt;b&#62; R & D", "\\&lt;b\\&#62; R & D"),
            // Its own backslash cannot take that of the escape away.
            ("\\<b>", "\\\\\\<b>"),
            ("\u{1b}[2J\u{202e}", "\\\\u001b\\[2J\\\\u202e"),
        ] {
            assert_eq!(markdown(text), shown, "{text:?}");
        }
    }
}
