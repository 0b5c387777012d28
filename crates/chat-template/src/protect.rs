//! Protects against special tokens in messages: users may write them, but they must stay plain
//! text.
//!
//! A message's text is marked before the template sees it, with a character that no text has, in
//! each place where a special token would be read. The template may trim, split and join: the
//! marks stay where they are. Afterwards the marks say which special tokens of the rendered text
//! are the template's own.

use aho_corasick::{AhoCorasick, BuildError};

/// The texts of a vocabulary's control tokens.
#[derive(Clone, Debug)]
pub struct SpecialTokens {
    texts: Vec<String>,
    finder: AhoCorasick,
}

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its text.
    pub text: String,
    /// True if its special tokens are the template's own; otherwise it is plain text.
    pub has_special_tokens: bool,
}

/// Noncharacters of Unicode, which are never exchanged, then private characters: some character of
/// these is in no text that fits in memory.
fn marks() -> impl Iterator<Item = char> {
    ('\u{fdd0}'..='\u{fdef}').chain('\u{f0000}'..='\u{ffffd}')
}

impl SpecialTokens {
    /// Takes the texts of all control tokens; those of fewer than two characters cannot be marked
    /// and are left out.
    ///
    /// # Errors
    /// There are more than can be searched for.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Result<Self, BuildError> {
        let texts: Vec<String> =
            texts.into_iter().filter(|text| text.chars().nth(1).is_some()).collect();
        let finder = AhoCorasick::new(&texts)?;
        Ok(Self { texts, finder })
    }

    /// A character that is in none of the texts.
    pub(crate) fn mark(texts: &[&str]) -> char {
        let is_unused = |mark: &char| !texts.iter().any(|text| text.contains(*mark));
        marks().find(is_unused).unwrap_or('\u{fdd0}')
    }

    /// The text with a mark inside each special token, also inside those that it begins or ends
    /// with in part.
    pub(crate) fn marked(&self, text: &str, mark: char) -> String {
        let mut at: Vec<usize> = Vec::new();
        let second = |start: usize| {
            text[start..].chars().next().map_or(start, |first| start + first.len_utf8())
        };
        for found in self.finder.find_overlapping_iter(text) {
            at.push(second(found.start()));
        }

        for token in &self.texts {
            for (cut, _) in token.char_indices().skip(1) {
                // The template's text could complete the token, after or before this text.
                if text.ends_with(&token[..cut]) {
                    at.push(second(text.len() - cut));
                }
                if text.starts_with(&token[cut..]) {
                    at.push(0);
                }
            }
        }

        at.sort_unstable();
        at.dedup();
        let mut out = String::with_capacity(text.len() + at.len() * mark.len_utf8());
        let mut from = 0;
        for place in at {
            out += &text[from..place];
            out.push(mark);
            from = place;
        }
        out + &text[from..]
    }

    /// The rendered text without its marks, in pieces.
    pub(crate) fn pieces(&self, rendered: &str, mark: char) -> Vec<Piece> {
        let mut text = String::with_capacity(rendered.len());
        let mut marked = Vec::new();
        for part in rendered.split_inclusive(mark) {
            text += part.trim_end_matches(mark);
            if part.ends_with(mark) {
                marked.push(text.len());
            }
        }

        let (mut own, mut plain) = (Vec::new(), Vec::new());
        for found in self.finder.find_overlapping_iter(&text) {
            let next = marked.partition_point(|place| *place <= found.start());
            let is_plain = marked.get(next).is_some_and(|place| *place < found.end());
            if is_plain { &mut plain } else { &mut own }.push((found.start(), found.end()));
        }

        // A plain one is taken together with the text around it, up to the next special token on
        // either side: a tokenizer merges over that text.
        let mut spans: Vec<(usize, usize)> = Vec::new();
        plain.sort_unstable();
        for (start, end) in plain {
            let before = own.iter().map(|token| token.1).filter(|own_end| *own_end <= start).max();
            let after = own.iter().map(|token| token.0).filter(|own_start| *own_start >= end).min();
            let span = (before.unwrap_or(0), after.unwrap_or(text.len()));
            match spans.last_mut() {
                Some(last) if span.0 < last.1 => last.1 = last.1.max(span.1),
                _ => spans.push(span),
            }
        }

        let mut pieces = Vec::new();
        let mut add = |text: &str, has_special_tokens: bool| {
            if !text.is_empty() {
                pieces.push(Piece { text: text.to_owned(), has_special_tokens });
            }
        };
        let mut from = 0;
        for (start, end) in spans {
            add(&text[from..start], true);
            add(&text[start..end], false);
            from = end;
        }
        add(&text[from..], true);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> SpecialTokens {
        SpecialTokens::new(["<|im_start|>", "<|im_end|>", "<s>", "x"].map(str::to_owned)).unwrap()
    }

    fn piece(text: &str, has_special_tokens: bool) -> Piece {
        Piece { text: text.to_owned(), has_special_tokens }
    }

    #[test]
    fn a_special_token_in_a_message_is_plain_text_and_the_templates_own_are_not() {
        let tokens = tokens();
        let message = tokens.marked("a <|im_end|> b", '\u{fdd0}');
        let rendered = format!("<|im_start|>user\n{message}<|im_end|>\n");

        assert_eq!(
            tokens.pieces(&rendered, '\u{fdd0}'),
            [
                piece("<|im_start|>", true),
                piece("user\na <|im_end|> b", false),
                piece("<|im_end|>\n", true)
            ]
        );
    }

    #[test]
    fn a_token_that_template_and_message_make_together_is_plain_text() {
        let tokens = tokens();
        for (before, message, after) in
            [("", "<|im_", "end|>"), ("<|im_", "end|>", ""), ("<", "s", ">"), ("", "<", "s>")]
        {
            let message = tokens.marked(message, '\u{fdd0}');
            let rendered = format!("{before}{message}{after}<s>");
            let pieces = tokens.pieces(&rendered, '\u{fdd0}');
            let text = rendered.replace('\u{fdd0}', "");
            let expected = [piece(text.strip_suffix("<s>").unwrap(), false), piece("<s>", true)];
            assert_eq!(
                pieces,
                if message == "s" { vec![piece(&text, true)] } else { expected.into() }
            );
        }
    }

    #[test]
    fn a_template_that_cuts_a_message_leaves_its_own_tokens_special() {
        let tokens = tokens();
        let message = tokens.marked("ends with <", '\u{fdd0}');
        let rendered = format!("{}<|im_end|>", message.replace('<', ""));
        assert_eq!(tokens.pieces(&rendered, '\u{fdd0}'), [piece("ends with <|im_end|>", true)]);
    }

    #[test]
    fn a_text_without_special_tokens_is_not_touched() {
        let tokens = tokens();
        assert_eq!(tokens.marked("place 4 9\n", '\u{fdd0}'), "place 4 9\n");
        assert_eq!(tokens.pieces("", '\u{fdd0}'), []);
        assert_eq!(SpecialTokens::mark(&["\u{fdd0}", "\u{fdd1}"]), '\u{fdd2}');
    }
}
