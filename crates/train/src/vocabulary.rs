//! The tokens of a model: one for each byte, three control tokens, and words that are one token
//! each.
//!
//! A text is split as llama.cpp splits user-defined tokens off: the longest word first, each from
//! left to right, and the rest byte by byte.

use super::TrainError;

/// Number of tokens of a vocabulary without words: bytes, then bos, eos and pad.
pub const BASE: usize = 259;
pub const BOS: u16 = 256;
pub const EOS: u16 = 257;
pub const PAD: u16 = 258;

/// Maximum number of words, which bounds the embedding of a tiny model.
const WORDS_MAX: usize = 1_024;

/// A vocabulary, which a checkpoint and an exported model keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// Sorted by descending length, then by their bytes. Their tokens follow the control tokens.
    words: Vec<String>,
}

impl Vocabulary {
    /// Creates a vocabulary with these words, in any order.
    ///
    /// # Errors
    /// If a word is shorter than two bytes, is not printable ASCII, or is listed twice, or if two
    /// words of one length can overlap in a text: llama.cpp does not define which it would split
    /// off first.
    pub fn new(mut words: Vec<String>) -> Result<Self, TrainError> {
        let refuse = |reason: String| Err(TrainError::Recipe(format!("data.words: {reason}")));
        if words.len() > WORDS_MAX {
            return refuse(format!("{} words, at most {WORDS_MAX} are possible", words.len()));
        }

        words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        for word in &words {
            if word.len() < 2 || !word.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return refuse(format!(
                    "{word:?} is not a word of two or more printable ASCII characters"
                ));
            }
        }

        for (index, word) in words.iter().enumerate() {
            for other in words[index + 1..].iter().take_while(|other| other.len() == word.len()) {
                if word == other {
                    return refuse(format!("{word:?} is listed twice"));
                }
                if overlaps(word, other) || overlaps(other, word) {
                    return refuse(format!(
                        "{word:?} and {other:?} can overlap in a text: leave one of them out"
                    ));
                }
            }
        }

        Ok(Self { words })
    }

    /// The words, in the order of their tokens.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Number of tokens.
    pub fn size(&self) -> usize {
        BASE + self.words.len()
    }

    /// Splits a text into tokens, without bos and eos.
    pub fn encode(&self, text: &str) -> Vec<u16> {
        let mut tokens = Vec::with_capacity(text.len());
        self.cut(text, 0, &mut tokens);
        tokens
    }

    /// The text of tokens. Control tokens have none, and invalid UTF-8 is replaced.
    pub fn decode(&self, tokens: &[u16]) -> String {
        let mut bytes = Vec::with_capacity(tokens.len());
        for &token in tokens {
            match u8::try_from(token) {
                Ok(byte) => bytes.push(byte),
                Err(_) => {
                    let word = usize::from(token)
                        .checked_sub(BASE)
                        .and_then(|index| self.words.get(index));
                    bytes.extend(word.map_or(&[][..], |word| word.as_bytes()));
                }
            }
        }

        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Splits `text` by the words from `first` on.
    fn cut(&self, mut text: &str, first: usize, tokens: &mut Vec<u16>) {
        let Some((index, word)) =
            self.words.iter().enumerate().skip(first).find(|(_, word)| text.contains(*word))
        else {
            tokens.extend(text.bytes().map(u16::from));
            return;
        };
        while let Some((before, after)) = text.split_once(word) {
            self.cut(before, index + 1, tokens);
            tokens.push((BASE + index) as u16);
            text = after;
        }
        self.cut(text, index + 1, tokens);
    }
}

/// Returns whether a proper suffix of `a` is a prefix of `b`.
fn overlaps(a: &str, b: &str) -> bool {
    (1..a.len()).any(|start| b.starts_with(&a[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(words: &[&str]) -> Vocabulary {
        Vocabulary::new(words.iter().map(|word| (*word).to_owned()).collect())
            .expect("a vocabulary")
    }

    #[test]
    fn the_longest_word_is_cut_out_first_and_the_rest_is_bytes() {
        let vocabulary = vocabulary(&["cmp ", "swap", "swapped=", "lt"]);
        assert_eq!(vocabulary.words(), ["swapped=", "cmp ", "swap", "lt"]);
        assert_eq!(vocabulary.size(), 263);
        assert_eq!(vocabulary.encode("swapped=1 swap 0"), [259, 49, 32, 261, 32, 48]);
        assert_eq!(vocabulary.encode("cmp cmp5é"), [260, 99, 109, 112, 53, 0xc3, 0xa9]);
        assert_eq!(Vocabulary::default().encode("ab"), [97, 98]);

        for text in ["swapped=1 swap 0", "cmp cmp5é", ""] {
            assert_eq!(vocabulary.decode(&vocabulary.encode(text)), text);
        }
        assert_eq!(vocabulary.decode(&[BOS, 97, EOS, 0xff]), "a\u{fffd}");
    }

    #[test]
    fn a_longer_word_wins_over_one_further_left() {
        assert_eq!(vocabulary(&["abc", "cdef"]).encode("abcdef"), [97, 98, 259]);
    }

    #[test]
    fn words_whose_order_is_not_defined_are_refused_by_name() {
        for (words, part) in [
            (&["abc", "cde"][..], r#""abc" and "cde" can overlap"#),
            (&["ab", "ab"][..], r#""ab" is listed twice"#),
            (&["a"][..], r#""a" is not a word"#),
            (&["a\nb"][..], "printable ASCII"),
        ] {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let message = Vocabulary::new(words).expect_err("refused").to_string();
            assert!(message.contains("data.words") && message.contains(part), "{message}");
        }
    }
}
