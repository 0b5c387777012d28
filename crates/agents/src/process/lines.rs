//! Reads lines of bounded length from a program.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without the newline.
    Whole(Vec<u8>),
    TooLong,
    /// End of the stream; an unterminated last line is dropped.
    Closed,
}

/// A stream as lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    bytes_max: u64,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R, bytes_max: u64) -> Self {
        Self { reader: BufReader::new(reader), bytes_max }
    }

    /// The next line. Not cancellation safe: what was read so far is lost.
    pub async fn next(&mut self) -> io::Result<Line> {
        let mut line = Vec::new();
        // One byte more than a line may have: its newline, or the proof that it is too long.
        (&mut self.reader).take(self.bytes_max + 1).read_until(b'\n', &mut line).await?;

        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
            return Ok(Line::Whole(line));
        }
        Ok(if line.len() as u64 > self.bytes_max { Line::TooLong } else { Line::Closed })
    }

    /// Bytes read beyond the last line.
    pub fn left_over(&self) -> &[u8] {
        self.reader.buffer()
    }

    /// Waits for data without consuming it; empty at the end of the stream. Cancellation safe.
    pub async fn peek(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_at_their_limit() {
        let rows: [(&[u8], Line); 6] = [
            (b"1234\nrest", Line::Whole(b"1234".to_vec())),
            (b"123\r\n", Line::Whole(b"123".to_vec())),
            (b"\n", Line::Whole(Vec::new())),
            (b"12345\n", Line::TooLong),
            (b"1234", Line::Closed),
            (b"", Line::Closed),
        ];
        for (text, expected) in rows {
            assert_eq!(Lines::new(text, 4).next().await.expect("memory"), expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn bytes_after_a_line_are_left_over() {
        let mut lines = Lines::new(&b"a\nb"[..], 4);
        assert_eq!(lines.next().await.expect("memory"), Line::Whole(b"a".to_vec()));
        assert_eq!(lines.left_over(), b"b");
        assert_eq!(lines.peek().await.expect("memory"), b"b");
    }
}
