//! The standard error stream of a program: read all the time, logged line by line, and its end kept for messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Lines that are kept.
const LINES_MAX: usize = 10;
/// Bytes of a line that are kept and logged; the rest of it is dropped.
const LINE_BYTES_MAX: usize = 400;
/// How long to wait for the last words of a program that was ended.
const CLOSING_WAIT: Duration = Duration::from_millis(200);

type Kept = Arc<Mutex<VecDeque<String>>>;

pub(super) struct LastWords {
    kept: Kept,
    reading: JoinHandle<()>,
}

/// Cuts what comes into lines.
struct Cutter {
    agent: Arc<str>,
    kept: Kept,
    line: Vec<u8>,
}

impl Cutter {
    fn take(&mut self, chunk: &[u8]) {
        for byte in chunk {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
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

impl LastWords {
    /// Reads a stream to its end, on a task of the present runtime.
    pub fn keep(agent: Arc<str>, mut stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let kept = Kept::default();
        let mut cutter = Cutter { agent, kept: Arc::clone(&kept), line: Vec::new() };
        let reading = tokio::spawn(async move {
            let mut chunk = vec![0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                cutter.take(&chunk[..length]);
            }
            cutter.end_line();
        });
        Self { kept, reading }
    }

    /// What was kept, once the stream is closed or will not be soon.
    pub async fn take(&mut self) -> Vec<String> {
        if timeout(CLOSING_WAIT, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_cut() {
        let lines: Vec<_> = (0..25).map(|line| format!("line {line}")).collect();
        let text = format!("{}\n\n{}", lines.join("\n\n"), "é".repeat(1000));
        let stream = std::io::Cursor::new(text.into_bytes());
        let words = LastWords::keep("verifier `x`".into(), stream).take().await;
        assert_eq!(words.len(), 10);
        assert_eq!(words[0], "line 16");
        assert_eq!(words[8], "line 24");
        assert_eq!(words[9], "é".repeat(200), "the last line needs no end");
    }
}
