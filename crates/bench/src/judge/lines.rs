//! Numbered lines of an untrusted file, bounded in length.

use std::io::{self, BufRead};

/// The longest line that is read: a trace of a million actions takes about 16 MB.
pub const LINE_MAX: usize = 256 << 20;

/// What some editors put at the start of a file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line, or why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Counted from 1.
    pub number: u64,
    pub text: Result<String, String>,
}

/// Reads lines, skipping empty ones.
pub struct Lines<R> {
    input: R,
    number: u64,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self::with_longest(input, LINE_MAX)
    }

    fn with_longest(input: R, longest: usize) -> Self {
        Self { input, number: 0, longest }
    }

    /// Reads up to the next line end, discarding a line that is too long. `None` at the end.
    fn bytes(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let available = self.input.fill_buf()?;
            if available.is_empty() {
                return Ok((!line.is_empty() || too_long).then_some((line, too_long)));
            }

            // A line that is too long is still read to its end, so that the next one is found.
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(available.len());
            too_long |= line.len() + taken > self.longest;
            if too_long {
                line.clear();
            } else {
                line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Ok(Some((line, too_long)));
            }
        }
    }

    /// The next line that is not empty.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Numbered>> {
        loop {
            let Some((bytes, too_long)) = self.bytes()? else { return Ok(None) };
            self.number += 1;

            let bytes = match bytes.strip_prefix(BYTE_ORDER_MARK) {
                Some(rest) if self.number == 1 => rest.to_vec(),
                _ => bytes,
            };

            let text = if too_long {
                Err(format!("longer than {} MiB", self.longest >> 20))
            } else {
                // An output with invalid characters is judged all the same.
                Ok(String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
            };

            if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
                continue;
            }
            return Ok(Some(Numbered { number: self.number, text }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_and_bad_ones_are_named() {
        let mut lines =
            Lines::with_longest(&b"\xef\xbb\xbfa\n\n  \r\nb\xff\nlong line\nlast"[..], 5);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().expect("read") {
            seen.push((line.number, line.text));
        }
        assert_eq!(
            seen,
            [
                (1, Ok("a".to_owned())),
                (4, Ok("b\u{fffd}".to_owned())),
                (5, Err("longer than 0 MiB".to_owned())),
                (6, Ok("last".to_owned())),
            ]
        );
    }
}
