//! The parent's handle to a worker: starts it, sends to it without blocking, and ends it.
//!
//! Makes no decisions: the supervisor says when to start, send and kill.

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

use super::devices::HostGpus;
use super::wire::{ContextId, ToWorker, Turn, TurnId, encode};
use super::worker::SUBCOMMAND;
use super::worker_output::{StderrTail, WorkerEvent, read_frames};
use super::{EngineError, EngineSpec, Isolation};

/// How long to wait for a thread's last decode.
const THREAD_END_WAIT: Duration = Duration::from_secs(2);
/// Environment variables that a worker inherits. All others may hold secrets.
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
pub(super) struct WorkerHandle {
    kind: Kind,
    events: Receiver<WorkerEvent>,
}

#[cfg_attr(
    not(feature = "llama"),
    allow(dead_code, reason = "there is no loop to run in a thread")
)]
enum Kind {
    Process { child: Child, socket: UnixStream, out: Vec<u8>, stderr: StderrTail },
    Thread { turns: Sender<ToWorker<'static>> },
}

impl WorkerHandle {
    /// Starts a worker and sends it the specification.
    pub(super) fn start(spec: &EngineSpec) -> io::Result<Self> {
        let mut worker = match spec.isolation {
            Isolation::Process => Self::start_process(spec)?,
            Isolation::Thread => Self::start_thread(spec)?,
        };
        worker.send(ToWorker::Start {
            spec: Box::new(spec.clone()),
            fault: spec.fault.clone(),
            stub_answer: spec.stub_answer.clone(),
        });
        Ok(worker)
    }

    fn start_process(spec: &EngineSpec) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut child = worker_command_for(spec)
            .map_err(io::Error::other)?
            .arg(std::process::id().to_string())
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;

        let stderr = child.stderr.take();
        let reading = socket.try_clone().and_then(|socket| {
            let stderr = StderrTail::capture(&spec.name, stderr, spec.logs)?;
            Ok((read_frames(&spec.name, socket)?, stderr))
        });

        match reading {
            Ok((events, stderr)) => {
                Ok(Self { kind: Kind::Process { child, socket, out: Vec::new(), stderr }, events })
            }
            Err(error) => {
                // The child ends on its own when the socket closes, but it must also be waited for.
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
        let (answers, events) = crossbeam_channel::unbounded();
        let logs = if spec.logs { super::ffi::Stderr::All } else { super::ffi::Stderr::Silent };

        std::thread::Builder::new().name(format!("{}-loop", spec.name)).spawn(move || {
            let mut transport =
                super::transport::ChannelTransport { turns: inbox, answers: answers.clone() };
            let Ok(ToWorker::Start { spec, fault, .. }) = transport.turns.recv() else { return };
            super::ffi::keep_logs(logs);

            let end = catch_unwind(AssertUnwindSafe(|| {
                super::contexts::serve(&spec, fault, &mut transport)
            }));

            let reason = match end {
                Ok(Ok(())) => None,
                Ok(Err(fatal)) => Some(fatal.to_string()),
                Err(_) => Some("its thread panicked".to_owned()),
            };
            // If the parent is gone, nobody needs the reason.
            let _ = answers.send(WorkerEvent::Closed(reason));
        })?;

        Ok(Self { kind: Kind::Thread { turns }, events })
    }

    #[cfg(not(feature = "llama"))]
    fn start_thread(_spec: &EngineSpec) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(super) fn events(&self) -> &Receiver<WorkerEvent> {
        &self.events
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

    /// Tells the worker to drop a turn.
    pub(super) fn cancel(&mut self, id: TurnId) {
        self.send(ToWorker::Cancel(id));
    }

    /// Asks for a context of the model.
    pub(super) fn open(&mut self, context: ContextId, spec: &EngineSpec) {
        self.send(ToWorker::Open { context, spec: Box::new(spec.clone()) });
    }

    /// Has the worker free a context, and drop its turns.
    pub(super) fn close(&mut self, context: ContextId) {
        self.send(ToWorker::Close(context));
    }

    fn send(&mut self, frame: ToWorker<'_>) {
        match &mut self.kind {
            Kind::Process { out, .. } => {
                encode(&frame, out)
                    .expect("invariant: requests are checked against the frame's limit");
                self.flush();
            }
            Kind::Thread { turns } => {
                // Only a turn borrows; the other frames are rebuilt because their lifetime changes.
                let frame = match frame {
                    ToWorker::Start { spec, fault, stub_answer } => {
                        ToWorker::Start { spec, fault, stub_answer }
                    }
                    ToWorker::Open { context, spec } => ToWorker::Open { context, spec },
                    ToWorker::Close(context) => ToWorker::Close(context),
                    ToWorker::Cancel(id) => ToWorker::Cancel(id),
                    ToWorker::Turn(turn) => ToWorker::Turn(turn.into_owned()),
                };
                // A thread that ended has reported it on `events`.
                let _ = turns.send(frame);
            }
        }
    }

    /// Returns whether output is buffered because the worker is not reading.
    pub(super) fn is_backed_up(&self) -> bool {
        matches!(&self.kind, Kind::Process { out, .. } if !out.is_empty())
    }

    /// Sends buffered output, as much as the socket takes now.
    pub(super) fn flush(&mut self) {
        let Kind::Process { socket, out, .. } = &mut self.kind else { return };

        let mut sent = 0;
        while sent < out.len() {
            match rustix::net::send(
                &*socket,
                &out[sent..],
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(length) => sent += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The reading side notices a dead worker.
                Err(_) => sent = out.len(),
            }
        }

        out.drain(..sent);
    }

    /// Ends the worker and describes how it ended. A thread that does not end on its own is
    /// abandoned.
    pub(super) fn end(self) -> String {
        match self.kind {
            Kind::Thread { turns } => {
                // The loop sees the closed channel after its current decode.
                drop(turns);
                let closed = loop {
                    match self.events.recv_timeout(THREAD_END_WAIT) {
                        Ok(WorkerEvent::Frame(_)) => {}
                        Ok(WorkerEvent::Closed(_)) | Err(RecvTimeoutError::Disconnected) => {
                            break true;
                        }
                        Err(RecvTimeoutError::Timeout) => break false,
                    }
                };

                if closed {
                    "its thread ended".to_owned()
                } else {
                    "its thread did not end and was abandoned".to_owned()
                }
            }
            Kind::Process { mut child, socket, stderr, .. } => {
                drop(socket);
                // It may be dead already; `wait` reports how it ended.
                let _ = child.kill();
                let status = child.wait();
                let status = status.map_or_else(|error| error.to_string(), describe);

                match stderr.take() {
                    tail if tail.is_empty() => status,
                    tail => format!("{status}: {tail}"),
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
    // Huge pages for KV pools, where the system grants them on request: about 5 % faster decodes on
    // a CPU.
    command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    // CUDA's default order is by speed, so it changes with the cards.
    command.env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");

    Ok(command)
}

/// The command of [`worker_command`], for a worker that sees only the GPUs of `spec`; none for the
/// CPU.
///
/// # Errors
/// [`EngineError::DeviceMissing`] or [`EngineError::BadSpec`] for GPUs that cannot be used,
/// [`EngineError::WorkerDied`] if the path of the running binary is unknown.
pub(super) fn worker_command_for(spec: &EngineSpec) -> Result<Command, EngineError> {
    let visible = host_gpus().bind(&spec.device)?;
    let mut command = worker_command(spec.worker.as_ref()).map_err(|error| {
        EngineError::WorkerDied { detail: format!("it could not be started: {error}") }
    })?;
    command.env("CUDA_VISIBLE_DEVICES", visible);
    Ok(command)
}

/// The GPUs of this host that this process may use.
pub(super) fn host_gpus() -> HostGpus {
    let visible = std::env::var_os("CUDA_VISIBLE_DEVICES");
    HostGpus::read(Path::new("/"), visible.as_deref().map(|list| list.to_string_lossy()).as_deref())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(9)) => {
            "it was killed by signal 9 (by hand, by the watchdog, or for lack of memory)".to_owned()
        }
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}
