//! Text columns: PostgreSQL refuses the character U+0000, which other stores keep.

use std::borrow::Cow;

/// Writes U+0000 as 1, 1 and U+0001 as 1, 2. This preserves equality and the order of bytes.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

/// Reverses [`encode`].
pub(super) fn decode(text: String) -> String {
    if !text.contains('\u{1}') {
        return text;
    }

    let mut decoded = String::with_capacity(text.len());

    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1}' if characters.next() == Some('\u{1}') => decoded.push('\0'),
            other => decoded.push(other),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_and_keeps_its_order() {
        let mut texts = [
            "",
            "a",
            "\0",
            "\u{1}",
            "\0\u{1}\0",
            "\u{1}\u{1}",
            "\u{1}\u{2}",
            "\u{2}",
            "a\0b",
            "ü\0",
            "\0\0",
        ];
        texts.sort_unstable();
        let encoded: Vec<_> = texts.iter().map(|text| encode(text).into_owned()).collect();
        assert!(encoded.is_sorted(), "{encoded:?}");
        for (text, encoded) in texts.iter().zip(encoded) {
            assert!(!encoded.contains('\0'));
            assert_eq!(decode(encoded), *text);
        }
    }
}
