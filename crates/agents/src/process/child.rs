//! One running process of a program: handshake, request and answer lines, termination. The slot
//! decides when.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::PROTOCOL_VERSION;
use super::fault::{ProcessFault, quoted};
use super::lines::{Line, Lines};
use super::stderr_tail::StderrTail;
use super::stragglers;
use crate::Failure;

/// How long a process may take to exit on its own once its standard input is closed.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long to wait for a killed process. Only the kernel can delay it.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// How long an answer that a process wrote before it exited may take to arrive.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);

/// How to start a process.
#[derive(Debug)]
pub(super) struct LaunchSpec {
    /// Role and name, such as "verifier `process`".
    pub agent: Arc<str>,
    /// The program and its arguments; not empty.
    pub command: Vec<String>,
    /// Its entire environment.
    pub environment: Vec<(String, OsString)>,
    pub line_bytes_max: u64,
    /// The handshake, newline included.
    pub hello: Vec<u8>,
    /// What a task's program declares of its task: the answer of the first process, which all
    /// others must repeat. `None` for agents, which declare nothing.
    pub declared: Option<OnceLock<Value>>,
}

/// A program's answer to the handshake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    prime: u32,
    task: Option<Value>,
}

/// The part that every answer has.
#[derive(Deserialize)]
struct Head {
    id: u64,
}

/// Takes what a process declares of its task.
fn declare(declared: Option<&OnceLock<Value>>, task: Option<Value>) -> Result<(), ProcessFault> {
    let refused = |reason: &str| Err(ProcessFault::new(Failure::Refused, reason));
    match (declared, task) {
        (None, None) => Ok(()),
        (None, Some(_)) => refused(
            "it answered the handshake with a `task`, but it was started as an agent; configure \
             it under `tasks`",
        ),
        (Some(_), None) => refused(
            "it answered the handshake without its `task`: a table with at least `name` and \
             `statement`",
        ),
        (Some(declared), Some(task)) if *declared.get_or_init(|| task.clone()) == task => Ok(()),
        (Some(_), Some(_)) => refused(
            "it declares another task than the process before it: it was changed while it is in \
             use; reload the configuration",
        ),
    }
}

pub(super) struct ChildProcess {
    child: Child,
    /// The process group that it leads, with everything it starts.
    group: Option<Pid>,
    /// The mark in its environment and in that of everything it starts.
    mark: String,
    stdin: Option<ChildStdin>,
    stdout: Lines<ChildStdout>,
    stderr_tail: StderrTail,
    line_bytes_max: u64,
}

impl ChildProcess {
    /// Starts a process as leader of its own process group, so that its children are killed with
    /// it.
    pub fn start(launch: &LaunchSpec) -> Result<Self, ProcessFault> {
        let refused = |error: &io::Error| {
            let program = &launch.command[0];
            let reason =
                format!("cannot start the program {program:?}: {error}; correct `command`");
            ProcessFault::new(Failure::Refused, reason)
        };

        let mark = stragglers::new_mark();
        let mut child = Command::new(&launch.command[0])
            .args(&launch.command[1..])
            // A program sees no secret that is not passed to it.
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .env(stragglers::VARIABLE, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| refused(&error))?;

        let piped = "invariant: all three streams are pipes";
        let stdout = child.stdout.take().expect(piped);
        let stderr = child.stderr.take().expect(piped);

        Ok(Self {
            group: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            mark,
            stdin: child.stdin.take(),
            child,
            stdout: Lines::new(stdout, launch.line_bytes_max),
            stderr_tail: StderrTail::read(Arc::clone(&launch.agent), stderr),
            line_bytes_max: launch.line_bytes_max,
        })
    }

    /// Sends the handshake and waits for the answer.
    pub async fn handshake(&mut self, launch: &LaunchSpec) -> Result<(), ProcessFault> {
        let line = self.ask(&launch.hello).await?;
        let (prime, task) = match serde_json::from_slice::<Hello>(&line) {
            Ok(Hello { prime, task }) => (prime, task),
            Err(error) => {
                let line = quoted(&line);
                let reason = format!(
                    "it answered the handshake with {line} instead of {{\"prime\":1}}: {error}"
                );
                return Err(ProcessFault::new(Failure::Malformed, reason));
            }
        };

        if prime != PROTOCOL_VERSION {
            let reason = format!(
                "it speaks version {prime} of the protocol, but version {PROTOCOL_VERSION} is \
                 needed"
            );
            return Err(ProcessFault::new(Failure::Refused, reason));
        }
        declare(launch.declared.as_ref(), task)?;
        self.check_silent()
    }

    /// Sends a request and waits for the answer line.
    pub async fn exchange(&mut self, id: u64, request: &[u8]) -> Result<Vec<u8>, ProcessFault> {
        self.check_silent()?;
        let line = self.ask(request).await?;

        match serde_json::from_slice(&line) {
            Ok(Head { id: answered }) if answered == id => Ok(line),
            Ok(Head { id: answered }) => {
                let reason = format!(
                    "it answered request {answered} instead of request {id}: {}",
                    quoted(&line)
                );
                Err(ProcessFault::new(Failure::Malformed, reason))
            }
            Err(error) => {
                let reason = format!(
                    "it wrote {} instead of an answer with \"id\":{id}: {error}",
                    quoted(&line)
                );
                Err(ProcessFault::new(Failure::Malformed, reason))
            }
        }
    }

    /// Resolves when an idle process exits or writes, which it must not. Cancellation safe.
    pub async fn unsolicited(&mut self) -> ProcessFault {
        let Self { child, stdout, .. } = self;
        tokio::select! {
            biased;
            written = stdout.peek() => match written {
                Ok([]) | Err(_) => ProcessFault::closed("standard output"),
                Ok(written) => unsolicited(written),
            },
            // What it has started may hold its streams open.
            _ = child.wait() => ProcessFault::exited(),
        }
    }

    fn check_silent(&self) -> Result<(), ProcessFault> {
        match self.stdout.left_over() {
            [] => Ok(()),
            written => Err(unsolicited(written)),
        }
    }

    /// Writes and reads concurrently: a process that writes without reading must not block us.
    async fn ask(&mut self, line: &[u8]) -> Result<Vec<u8>, ProcessFault> {
        let Self { child, stdin, stdout, line_bytes_max, .. } = self;
        let stdin =
            stdin.as_mut().expect("invariant: the stream is open until the process is terminated");

        // Its exit, and not the end of its streams: what it has started may hold them open. What it
        // wrote before is there, but may not have been noticed yet.
        let exit = async {
            drop(child.wait().await);
            sleep(LAST_WORDS_WAIT).await;
        };
        let write = async {
            stdin.write_all(line).await.map_err(|_| ProcessFault::closed("standard input"))?;
            stdin.flush().await.map_err(|_| ProcessFault::closed("standard input"))
        };
        let read = async {
            match stdout.next().await {
                Ok(Line::Whole(line)) => Ok(line),
                Ok(Line::TooLong) => Err(too_long(*line_bytes_max)),
                Ok(Line::Closed) | Err(_) => Err(ProcessFault::closed("standard output")),
            }
        };

        tokio::select! {
            biased;
            answered = async { tokio::try_join!(write, read) } => answered.map(|((), line)| line),
            () = exit => Err(ProcessFault::exited()),
        }
    }

    /// Terminates the process after a fault; adds its exit status and standard error to the fault.
    pub async fn terminate(&mut self, mut fault: ProcessFault) -> ProcessFault {
        // Its end of input lets a well-behaved process exit on its own.
        drop(self.stdin.take());

        // Awaited before it is killed, or its own exit status would be lost.
        let status = if fault.has_exited { self.wait_for_exit().await } else { None };
        if let Some(status) = status {
            fault.reason = describe(status);
        }

        self.kill().await;
        if fault.has_exited && status.is_none() {
            fault.reason += " without exiting";
        }

        let lines = self.stderr_tail.take().await;
        if !lines.is_empty() {
            fault.reason += &format!("; the end of its standard error: {:?}", lines.join("\n"));
        }
        fault
    }

    /// Closes standard input, waits for the process to exit, and kills it if it does not.
    pub async fn shut_down(mut self) {
        drop(self.stdin.take());
        self.wait_for_exit().await;
        self.kill().await;
    }

    async fn wait_for_exit(&mut self) -> Option<ExitStatus> {
        timeout(EXIT_WAIT, self.child.wait()).await.ok()?.ok()
    }

    /// Kills the process group, and what has left it.
    pub async fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // An error means that the group is empty already.
            let _ = kill_process_group(group, Signal::KILL);
            let mark = std::mem::take(&mut self.mark);
            // Awaited, so that nothing is left when this returns.
            let _ = spawn_blocking(move || stragglers::kill(&mark)).await;
        }
        // A process that takes longer is reaped by the runtime.
        let _ = timeout(KILL_WAIT, self.child.wait()).await;
    }
}

fn too_long(bytes: u64) -> ProcessFault {
    let reason = format!(
        "it wrote a line of more than {bytes} bytes; raise `line_bytes_max` if that is legitimate"
    );
    ProcessFault::new(Failure::TooLong, reason)
}

fn unsolicited(written: &[u8]) -> ProcessFault {
    ProcessFault::new(Failure::Malformed, format!("it wrote {} without a request", quoted(written)))
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit status {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => format!("it exited: {status}"),
    }
}
