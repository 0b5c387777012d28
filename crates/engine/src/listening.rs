//! What comes from a worker: its frames, and the end of its standard error stream.

use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::wire::{Frames, FromWorker};

/// What is kept of a worker's standard error stream, in bytes.
const LAST_WORDS_BYTES: usize = 4096;
/// How long to wait for the last words of a worker that is dead already.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);

/// What arrives from a worker.
pub(super) enum Heard {
    Frame(FromWorker),
    /// The last thing to arrive; with a reason where the link itself knows one.
    Closed(Option<String>),
}

/// The end of a worker's standard error stream, and a signal for when it closed.
pub(super) struct LastWords {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

/// Reads a worker's frames on a thread of their own, so that a worker never waits for the parent to read.
pub(super) fn read_frames(name: &str, mut socket: UnixStream) -> io::Result<Receiver<Heard>> {
    let (frames, heard) = unbounded();
    std::thread::Builder::new().name(format!("{name}-read")).spawn(move || {
        let mut arrived = Frames::default();
        let mut chunk = vec![0; 64 << 10];
        let reason = loop {
            match arrived.next() {
                Ok(Some(frame)) => {
                    if frames.send(Heard::Frame(frame)).is_err() {
                        return;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => break Some(error.to_string()),
            }
            match socket.read(&mut chunk) {
                Ok(0) => break None,
                Ok(length) => arrived.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break None,
            }
        };
        // The keeper may have given the worker up already.
        let _ = frames.send(Heard::Closed(reason));
    })?;
    Ok(heard)
}

/// Reads a worker's standard error stream on a thread of its own.
pub(super) fn keep_last_words(name: &str, stderr: Option<ChildStderr>, show: bool) -> io::Result<LastWords> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    // Closes when the thread ends.
    let (open, closed) = bounded(0);
    if let Some(mut stderr) = stderr {
        let kept = Arc::clone(&kept);
        std::thread::Builder::new().name(format!("{name}-stderr")).spawn(move || {
            let _open: Sender<()> = open;
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                if show {
                    // The worker's log is a convenience: a closed stream does not matter.
                    let _ = io::stderr().write_all(&chunk[..length]);
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..length]);
                let surplus = kept.len().saturating_sub(LAST_WORDS_BYTES);
                kept.drain(..surplus);
            }
        })?;
    }
    Ok(LastWords { kept, closed })
}

impl LastWords {
    /// What was kept, once the stream is closed.
    pub(super) fn take(self) -> String {
        // Returns as soon as the stream is closed, which the end of the worker does.
        let _ = self.closed.recv_timeout(LAST_WORDS_WAIT);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().replace('\n', "; ")
    }
}
