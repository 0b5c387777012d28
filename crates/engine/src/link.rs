//! The parent's end of a worker: starts one, speaks to it without blocking, and ends it.
//!
//! Decides nothing: when to start, send and kill is the keeper's business.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::devices::Gpus;
use super::listening::{Heard, LastWords, keep_last_words, read_frames};
use super::wire::{ToWorker, Turn, TurnId, encode};
use super::worker::SUBCOMMAND;
use super::{EngineError, EngineSpec, Isolation};

/// How long to wait for a thread's last decode.
const THREAD_END_WAIT: Duration = Duration::from_secs(2);
/// Variables that a worker gets from its parent's environment; everything else, secrets first of all, stays away.
const ENVIRONMENT: [&str; 11] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "GOMP_SPINCOUNT",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_CACHE_PATH",
    "GGML_BACKEND_PATH",
];

/// A running worker.
pub(super) struct Link {
    kind: Kind,
    heard: Receiver<Heard>,
}

#[cfg_attr(not(feature = "llama"), allow(dead_code, reason = "there is no loop to run in a thread"))]
enum Kind {
    Process { child: Child, socket: UnixStream, out: Vec<u8>, last_words: LastWords },
    Thread { turns: Sender<ToWorker<'static>> },
}

impl Link {
    /// Starts a worker and tells it what to load.
    pub(super) fn start(spec: &EngineSpec) -> io::Result<Self> {
        let mut link = match spec.isolation {
            Isolation::Process => Self::start_process(spec)?,
            Isolation::Thread => Self::start_thread(spec)?,
        };
        link.send(ToWorker::Start { spec: Box::new(spec.clone()), fault: spec.fault.clone(), echo: spec.echo.clone() });
        Ok(link)
    }

    fn start_process(spec: &EngineSpec) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut child = bound_command(spec)
            .map_err(io::Error::other)?
            .arg(std::process::id().to_string())
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take();
        let reading = socket.try_clone().and_then(|socket| {
            let last_words = keep_last_words(&spec.name, stderr, spec.logs)?;
            Ok((read_frames(&spec.name, socket)?, last_words))
        });
        match reading {
            Ok((heard, last_words)) => {
                Ok(Self { kind: Kind::Process { child, socket, out: Vec::new(), last_words }, heard })
            }
            Err(error) => {
                // The child would end by itself when the socket closes; it must also be waited for.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    #[cfg(feature = "llama")]
    fn start_thread(spec: &EngineSpec) -> io::Result<Self> {
        use std::panic::{AssertUnwindSafe, catch_unwind};

        let (turns, inbox) = crossbeam_channel::unbounded();
        let (answers, heard) = crossbeam_channel::unbounded();
        let logs = if spec.logs { super::ffi::Stderr::All } else { super::ffi::Stderr::Silent };
        std::thread::Builder::new().name(format!("{}-loop", spec.name)).spawn(move || {
            let mut port = super::port::ChannelPort { turns: inbox, answers: answers.clone() };
            let Ok(ToWorker::Start { spec, fault, .. }) = port.turns.recv() else { return };
            super::ffi::keep_logs(logs);
            let end = catch_unwind(AssertUnwindSafe(|| super::batching::serve(&spec, fault, &mut port)));
            let reason = match end {
                Ok(Ok(())) => None,
                Ok(Err(fatal)) => Some(fatal.to_string()),
                Err(_) => Some("its thread panicked".to_owned()),
            };
            // The parent may be gone; then nobody needs the reason.
            let _ = answers.send(Heard::Closed(reason));
        })?;
        Ok(Self { kind: Kind::Thread { turns }, heard })
    }

    #[cfg(not(feature = "llama"))]
    fn start_thread(_spec: &EngineSpec) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(super) fn heard(&self) -> &Receiver<Heard> {
        &self.heard
    }

    /// Process id of the worker, if it is a process.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Process { child, .. } => Some(child.id()),
            Kind::Thread { .. } => None,
        }
    }

    /// Sends a turn, or as much of it as the socket takes now; `flush` sends the rest.
    pub(super) fn send_turn(&mut self, turn: Turn<'_>) {
        match &self.kind {
            Kind::Process { .. } => self.send(ToWorker::Turn(turn)),
            Kind::Thread { .. } => self.send(ToWorker::Turn(turn.into_owned())),
        }
    }

    /// Tells the worker that nobody waits for a turn any more.
    pub(super) fn cancel(&mut self, id: TurnId) {
        self.send(ToWorker::Cancel(id));
    }

    fn send(&mut self, frame: ToWorker<'_>) {
        match &mut self.kind {
            Kind::Process { out, .. } => {
                encode(&frame, out).expect("invariant: requests are checked against the frame's limit");
                self.flush();
            }
            Kind::Thread { turns } => {
                let frame = match frame {
                    ToWorker::Start { spec, fault, echo } => ToWorker::Start { spec, fault, echo },
                    ToWorker::Cancel(id) => ToWorker::Cancel(id),
                    ToWorker::Turn(turn) => ToWorker::Turn(turn.into_owned()),
                };
                // A thread that ended has said so on `heard`.
                let _ = turns.send(frame);
            }
        }
    }

    /// Whether something is left to send because the worker does not read at the moment.
    pub(super) fn is_backed_up(&self) -> bool {
        matches!(&self.kind, Kind::Process { out, .. } if !out.is_empty())
    }

    /// Sends what is left, as far as the socket takes it now.
    pub(super) fn flush(&mut self) {
        let Kind::Process { socket, out, .. } = &mut self.kind else { return };
        let mut sent = 0;
        while sent < out.len() {
            match rustix::net::send(&*socket, &out[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(length) => sent += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A worker that is gone is noticed by the reading side.
                Err(_) => sent = out.len(),
            }
        }
        out.drain(..sent);
    }

    /// Ends the worker and tells how it ended. A thread that does not end by itself is left behind.
    pub(super) fn end(self) -> String {
        match self.kind {
            Kind::Thread { turns } => {
                // The loop sees the closed channel after its decode under way.
                drop(turns);
                let closed = loop {
                    match self.heard.recv_timeout(THREAD_END_WAIT) {
                        Ok(Heard::Frame(_)) => {}
                        Ok(Heard::Closed(_)) | Err(RecvTimeoutError::Disconnected) => break true,
                        Err(RecvTimeoutError::Timeout) => break false,
                    }
                };
                if closed { "its thread ended".to_owned() } else { "its thread was left behind".to_owned() }
            }
            Kind::Process { mut child, socket, last_words, .. } => {
                drop(socket);
                // It may be dead already; `wait` tells.
                let _ = child.kill();
                let status = child.wait();
                let status = status.map_or_else(|error| error.to_string(), describe);
                match last_words.take() {
                    words if words.is_empty() => status,
                    words => format!("{status}: {words}"),
                }
            }
        }
    }
}

/// The command that runs a worker, with a clean environment.
pub(super) fn worker_command(worker: Option<&PathBuf>) -> io::Result<Command> {
    let binary = worker.cloned().map_or_else(std::env::current_exe, Ok)?;
    let mut command = Command::new(binary);
    command.arg(SUBCOMMAND).env_clear();
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // ggml's own handler would start a debugger.
    command.env("GGML_NO_BACKTRACE", "1");
    // KV pools lie in large pages, where the system gives them to those who ask: about 5 % faster decodes on a processor.
    command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    // CUDA's own order is by speed, and changes with the cards.
    command.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    Ok(command)
}

/// As [`worker_command`], for a worker that sees the GPUs of `spec` and no other; none for the CPU.
///
/// # Errors
/// [`EngineError::DeviceMissing`] or [`EngineError::BadSpec`] for GPUs that cannot be, [`EngineError::WorkerDied`] if the
/// running binary is not known.
pub(super) fn bound_command(spec: &EngineSpec) -> Result<Command, EngineError> {
    let visible = host_gpus().bind(&spec.device)?;
    let mut command = worker_command(spec.worker.as_ref())
        .map_err(|error| EngineError::WorkerDied { detail: format!("it could not be started: {error}") })?;
    command.env("CUDA_VISIBLE_DEVICES", visible);
    Ok(command)
}

/// The GPUs of this host, as this process may see them.
pub(super) fn host_gpus() -> Gpus {
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES");
    Gpus::read(Path::new("/"), visible.as_deref().map(|list| list.to_string_lossy()).as_deref())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(9)) => "it was killed by signal 9 (by hand, by the watchdog, or for lack of memory)".to_owned(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}
