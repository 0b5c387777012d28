//! One running process of a program: it is greeted, asked line by line, and ended. When to do so is the slot's business.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::PROTOCOL_VERSION;
use super::fault::{Fault, shown};
use super::last_words::LastWords;
use super::lines::{Line, Lines};
use crate::agents::Failure;

/// How long a process may take to end by itself once its streams are closed.
const ENDING_WAIT: Duration = Duration::from_millis(500);
/// How long to wait for a process that was killed. Only the kernel can delay it.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// What is needed to start a process.
#[derive(Debug)]
pub(super) struct Launch {
    /// The role and the name, as "verifier `process`".
    pub agent: Arc<str>,
    /// The program and its arguments; not empty.
    pub command: Vec<String>,
    /// All of its environment.
    pub environment: Vec<(String, OsString)>,
    pub line_bytes_max: u64,
    /// The greeting, with the end of its line.
    pub hello: Vec<u8>,
}

/// What a program answers to the greeting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    prime: u32,
}

/// What every answer has.
#[derive(Deserialize)]
struct Head {
    id: u64,
}

pub(super) struct Running {
    child: Child,
    /// The group that the process leads, with whatever it starts.
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: Lines<ChildStdout>,
    last_words: LastWords,
    line_bytes_max: u64,
}

impl Running {
    /// Starts a process, at the head of a group of its own, so that what it starts itself ends with it.
    pub fn start(launch: &Launch) -> Result<Self, Fault> {
        let refused = |error: &io::Error| {
            let program = &launch.command[0];
            let reason = format!("the program {program:?} cannot be started: {error}; correct `command`");
            Fault::new(Failure::Refused, reason)
        };
        let mut child = Command::new(&launch.command[0])
            .args(&launch.command[1..])
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
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
            stdin: child.stdin.take(),
            child,
            stdout: Lines::new(stdout, launch.line_bytes_max),
            last_words: LastWords::keep(Arc::clone(&launch.agent), stderr),
            line_bytes_max: launch.line_bytes_max,
        })
    }

    /// Greets the process, and waits until it has answered.
    pub async fn greet(&mut self, hello: &[u8]) -> Result<(), Fault> {
        let line = self.ask(hello).await?;
        let prime = match serde_json::from_slice::<Hello>(&line) {
            Ok(Hello { prime }) => prime,
            Err(error) => {
                let line = shown(&line);
                let reason = format!("it answered the greeting with {line} instead of {{\"prime\":1}}: {error}");
                return Err(Fault::new(Failure::Malformed, reason));
            }
        };
        if prime != PROTOCOL_VERSION {
            let reason = format!("it speaks version {prime} of the protocol, and version {PROTOCOL_VERSION} is needed");
            return Err(Fault::new(Failure::Refused, reason));
        }
        self.check_silent()
    }

    /// Sends a request, and waits for the line that answers it.
    pub async fn exchange(&mut self, id: u64, request: &[u8]) -> Result<Vec<u8>, Fault> {
        self.check_silent()?;
        let line = self.ask(request).await?;
        match serde_json::from_slice(&line) {
            Ok(Head { id: answered }) if answered == id => Ok(line),
            Ok(Head { id: answered }) => {
                let reason = format!("it answered request {answered} and was asked {id}: {}", shown(&line));
                Err(Fault::new(Failure::Malformed, reason))
            }
            Err(error) => {
                let reason = format!("it wrote {} instead of an answer with \"id\":{id}: {error}", shown(&line));
                Err(Fault::new(Failure::Malformed, reason))
            }
        }
    }

    /// Waits until a process that was not asked ends or writes, which it should not.
    pub async fn unasked(&mut self) -> Fault {
        match self.stdout.peek().await {
            Ok([]) | Err(_) => Fault::closed("standard output"),
            Ok(written) => unasked(written),
        }
    }

    fn check_silent(&self) -> Result<(), Fault> {
        match self.stdout.left_over() {
            [] => Ok(()),
            written => Err(unasked(written)),
        }
    }

    /// Writes and reads at the same time: a process that writes without reading must not block us.
    async fn ask(&mut self, line: &[u8]) -> Result<Vec<u8>, Fault> {
        let Self { stdin, stdout, line_bytes_max, .. } = self;
        let stdin = stdin.as_mut().expect("invariant: the stream is open until the process is ended");
        let write = async {
            stdin.write_all(line).await.map_err(|_| Fault::closed("standard input"))?;
            stdin.flush().await.map_err(|_| Fault::closed("standard input"))
        };
        let read = async {
            match stdout.next().await {
                Ok(Line::Whole(line)) => Ok(line),
                Ok(Line::TooLong) => Err(too_long(*line_bytes_max)),
                Ok(Line::Closed) | Err(_) => Err(Fault::closed("standard output")),
            }
        };
        tokio::try_join!(write, read).map(|((), line)| line)
    }

    /// Ends the process after a fault, and adds to the fault what its end says.
    pub async fn end(&mut self, mut fault: Fault) -> Fault {
        drop(self.stdin.take());
        let status = if fault.is_end { self.ending().await } else { None };
        if let Some(status) = status {
            fault.reason = said(status);
        }
        self.kill().await;
        if fault.is_end && status.is_none() {
            fault.reason += " without ending";
        }
        let words = self.last_words.take().await;
        if !words.is_empty() {
            fault.reason += &format!("; the end of its standard error: {:?}", words.join("\n"));
        }
        fault
    }

    /// Lets the process end by itself, because its standard input is closed, and kills it if it does not.
    pub async fn finish(mut self) {
        drop(self.stdin.take());
        self.ending().await;
        self.kill().await;
    }

    async fn ending(&mut self) -> Option<ExitStatus> {
        timeout(ENDING_WAIT, self.child.wait()).await.ok()?.ok()
    }

    /// Kills the process and what it started.
    pub async fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // There may be nobody left in it.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // One that even the kernel cannot end in time is reaped later, by the runtime.
        let _ = timeout(KILLED_WAIT, self.child.wait()).await;
    }
}

fn too_long(bytes: u64) -> Fault {
    let reason =
        format!("it wrote more than {bytes} bytes without the end of a line; raise `line_bytes_max` if it must");
    Fault::new(Failure::TooLong, reason)
}

fn unasked(written: &[u8]) -> Fault {
    Fault::new(Failure::Malformed, format!("it wrote {} before it was asked", shown(written)))
}

fn said(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => format!("it ended: {status}"),
    }
}
