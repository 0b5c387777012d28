//! Reads what a worker writes: the frames on its socket, and the tail of its standard error stream.

use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use prime_printable::Printable;

use super::wire::{Frames, FromWorker};

/// Bytes kept of a worker's standard error stream.
const STDERR_TAIL_BYTES: usize = 4096;
/// How long to wait for the rest of a dead worker's standard error stream.
const STDERR_TAIL_WAIT: Duration = Duration::from_millis(500);

/// What arrives from a worker.
pub(super) enum WorkerEvent {
    Frame(FromWorker),
    /// The last event, with a reason where the connection itself failed.
    Closed(Option<String>),
}

/// Reads a worker's frames on a thread of its own, so that a worker never waits for the parent to
/// read.
pub(super) fn read_frames(name: &str, mut socket: UnixStream) -> io::Result<Receiver<WorkerEvent>> {
    let (sender, events) = unbounded();
    std::thread::Builder::new().name(format!("{name}-read")).spawn(move || {
        let mut frames = Frames::default();
        let mut chunk = vec![0; 64 << 10];
        let reason = loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    if sender.send(WorkerEvent::Frame(frame)).is_err() {
                        return;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => break Some(error.to_string()),
            }

            match socket.read(&mut chunk) {
                Ok(0) => break None,
                Ok(length) => frames.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break None,
            }
        };

        // The supervisor may have dropped the worker already.
        let _ = sender.send(WorkerEvent::Closed(reason));
    })?;
    Ok(events)
}

/// The tail of a worker's standard error stream, and a signal for when it closed.
pub(super) struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl StderrTail {
    /// Reads the stream on a thread of its own; with `show` it is passed through as well.
    pub(super) fn capture(name: &str, stderr: Option<ChildStderr>, show: bool) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        // Closes when the thread ends.
        let (open, closed) = bounded(0);
        if let Some(mut stderr) = stderr {
            let kept = Arc::clone(&kept);
            std::thread::Builder::new().name(format!("{name}-stderr")).spawn(move || {
                let _open: Sender<()> = open;
                // llama.cpp repeats names and metadata of a model's file.
                #[expect(clippy::disallowed_methods, reason = "through the writer that escapes")]
                let mut shown = Printable::new(io::stderr());
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = stderr.read(&mut chunk) {
                    if show {
                        // The worker's log is a convenience: a closed stream does not matter.
                        let _ = shown.write_all(&chunk[..length]);
                    }

                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&chunk[..length]);
                    let surplus = kept.len().saturating_sub(STDERR_TAIL_BYTES);
                    kept.drain(..surplus);
                }
            })?;
        }
        Ok(Self { kept, closed })
    }

    /// What was kept, once the stream is closed.
    pub(super) fn take(self) -> String {
        // Normally this returns at once, because the end of the worker closes the stream.
        let _ = self.closed.recv_timeout(STDERR_TAIL_WAIT);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().replace('\n', "; ")
    }
}
