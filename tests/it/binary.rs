//! Runs the binary, for tests of its commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Executors that need no model.
pub const SCRIPTED: [&str; 2] = ["--set", "agents.executor.implementation=scripted"];
pub const REFERENCE: [&str; 2] = ["--set", "agents.executor.implementation=reference"];

/// The binary with these arguments and an empty environment.
pub fn prime(arguments: &[&str]) -> Command {
    piped(Command::new(env!("CARGO_BIN_EXE_prime-agents")), arguments)
}

/// Like [`prime`], for a command that gets a signal.
pub fn prime_signalled(arguments: &[&str]) -> Command {
    with_signals(&prime(arguments), &["--default-signal=INT,TERM"])
}

/// The command with the actions of signals that these options of `env` set. Without any, it has
/// those of the tests, which may run in a shell's background, where SIGINT is ignored.
pub fn with_signals(inner: &Command, actions: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(actions).arg(inner.get_program()).args(inner.get_args());
    piped(command, &[])
}

fn piped(mut command: Command, arguments: &[&str]) -> Command {
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The output and exit code of a command.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("it ended by itself");
        let done = Self { code, stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
        done
    }
}

impl Done {
    /// The printed JSON, after checking the exit code.
    pub fn json(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).expect("JSON on standard output")
    }

    /// Checks for exit code 2, an empty standard output and a message with all of these parts.
    pub fn refused(&self, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {:?}", self.stderr);
        }
    }
}

pub fn done(arguments: &[&str]) -> Done {
    prime(arguments).output().expect("the binary starts").into()
}

/// `run` with JSON and these arguments after it.
pub fn run(arguments: &[&[&str]]) -> Done {
    done(&[&["run", "--output", "json"], arguments.concat().as_slice()].concat())
}

/// A folder with one file.
pub fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    (folder, path)
}

pub fn shown(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
