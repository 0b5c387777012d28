//! A program's standard error: drained continuously, logged line by line, and its last lines kept
//! for messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum number of lines that are kept.
const LINES_MAX: usize = 10;
/// Maximum bytes of a line that are kept and logged; the rest of the line is dropped.
const LINE_BYTES_MAX: usize = 400;
/// How long to wait for the end of a terminated program's stream.
const EOF_WAIT: Duration = Duration::from_millis(200);

type Kept = Arc<Mutex<VecDeque<String>>>;

pub(super) struct StderrTail {
    kept: Kept,
    reading: JoinHandle<()>,
}

/// Splits a stream into lines.
struct LineSplitter {
    agent: Arc<str>,
    kept: Kept,
    line: Vec<u8>,
}

impl LineSplitter {
    fn take(&mut self, chunk: &[u8]) {
        for byte in chunk {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                // It is read nevertheless: a full pipe would block the program.
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if text.is_empty() {
            return;
        }

        tracing::debug!(agent = &*self.agent, "{text}");

        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LINES_MAX {
            kept.pop_front();
        }
        kept.push_back(text);
    }
}

impl StderrTail {
    /// Reads a stream to its end, in a task of the current runtime.
    pub fn read(agent: Arc<str>, mut stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let kept = Kept::default();
        let mut splitter = LineSplitter { agent, kept: Arc::clone(&kept), line: Vec::new() };
        let reading = tokio::spawn(async move {
            let mut chunk = vec![0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                splitter.take(&chunk[..length]);
            }
            splitter.end_line();
        });
        Self { kept, reading }
    }

    /// Takes the kept lines, after waiting briefly for the end of the stream.
    pub async fn take(&mut self) -> Vec<String> {
        if timeout(EOF_WAIT, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_truncated() {
        let lines: Vec<_> = (0..25).map(|line| format!("line {line}")).collect();
        let text = format!("{}\n\n{}", lines.join("\n\n"), "é".repeat(1000));
        let stream = std::io::Cursor::new(text.into_bytes());
        let lines_kept = StderrTail::read("verifier `x`".into(), stream).take().await;
        assert_eq!(lines_kept.len(), 10);
        assert_eq!(lines_kept[0], "line 16");
        assert_eq!(lines_kept[8], "line 24");
        assert_eq!(lines_kept[9], "é".repeat(200), "the last line needs no end");
    }
}
