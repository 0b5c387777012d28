//! A writer that escapes what passes through it.

use std::io::{self, Write};

use super::{is_escaped, write_escape};

/// Longest start of a character whose end is still to come, in bytes.
const PARTIAL_MAX: usize = 3;

/// Writes text to `inner` as [`crate::printable`] shows it. Bytes that are not UTF-8 become U+FFFD;
/// a character may come in several writes.
pub struct Printable<W> {
    inner: W,
    /// True if the escape character itself passes, for a writer that styles its own text.
    is_styled: bool,
    /// The start of a character whose end is still to come.
    partial: Vec<u8>,
}

impl<W: Write> Printable<W> {
    /// Escapes everything that [`crate::is_escaped`] names.
    pub fn new(inner: W) -> Self {
        Self { inner, is_styled: false, partial: Vec::with_capacity(PARTIAL_MAX) }
    }

    /// For text whose writer has escaped the escape characters in it and styles it with its own.
    pub fn styled(inner: W) -> Self {
        Self { is_styled: true, ..Self::new(inner) }
    }

    fn text(&mut self, mut text: &str) -> io::Result<()> {
        let passes = |c: char| self.is_styled && c == '\u{1b}';
        while let Some(at) = text.find(|c| is_escaped(c) && !passes(c)) {
            let (plain, rest) = text.split_at(at);
            self.inner.write_all(plain.as_bytes())?;

            let c = rest.chars().next().expect("invariant: it was found");
            let mut escape = String::new();
            write_escape(&mut escape, c).expect("invariant: writing to a string succeeds");
            self.inner.write_all(escape.as_bytes())?;
            text = &rest[c.len_utf8()..];
        }
        self.inner.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let all = if self.partial.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.partial)[..], bytes].concat();
            &joined
        };

        let mut rest = all;
        while !rest.is_empty() {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    break;
                }
                Err(error) => error,
            };

            let (valid, invalid) = rest.split_at(error.valid_up_to());
            self.text(std::str::from_utf8(valid).expect("invariant: valid up to there"))?;
            let Some(length) = error.error_len() else {
                // The end of the character is in the next write, if there is one.
                self.partial = invalid.to_vec();
                break;
            };
            self.inner.write_all("\u{fffd}".as_bytes())?;
            rest = &invalid[length..];
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printable;

    fn written(parts: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut writer = Printable::new(&mut out);
        for part in parts {
            writer.write_all(part).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn it_makes_no_difference_where_a_text_is_cut() {
        let text = "é\u{1b}[2J漢\u{202e}🙂\u{9b}.\n";
        for cut in 0..=text.len() {
            let (start, end) = text.as_bytes().split_at(cut);
            assert_eq!(written(&[start, end]), printable(text), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes), printable(text));
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        assert_eq!(written(&[b"a\xffb\xf0\x9f", b"c"]), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_styled_text_keeps_its_own_escapes() {
        let mut out = Vec::new();
        let mut writer = Printable::styled(&mut out);
        writer.write_all("\u{1b}[31mred\u{202e}\u{9b}".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\u{1b}[31mred\\u202e\\u009b");
    }
}
