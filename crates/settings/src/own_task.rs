//! A task of the user's own: a program, or a WebAssembly module.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use super::program::Program;

/// A program or a WebAssembly module that says how a problem starts and what a line does to a state
/// (`docs/your-task.md`). One of `command` and `module` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnTask {
    /// The program and its arguments, such as `["python3", "-B", "jugs.py"]`. Not run through a
    /// shell. A program without a `/` is searched in `PATH`; relative paths are relative to the
    /// working directory.
    #[schemars(length(max = 256))]
    pub command: Vec<String>,
    /// The file of a WebAssembly module, instead of a program. It is read at the task's first use,
    /// and has no access to anything but its own memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub module: Option<String>,
    /// A file of inputs, one JSON value a line, on which `bench` and `study` measure; relative to
    /// the working directory. Runs do not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub inputs: Option<String>,
    /// Fuel of one answer of a module: about one unit for each instruction. An answer that takes
    /// more fails its turn.
    #[schemars(range(min = 1_000, max = 100_000_000_000_u64))]
    pub fuel_max: u64,
    /// Maximum bytes of a module's memory while it answers.
    #[schemars(range(min = 65_536, max = 4_294_967_296_u64))]
    pub memory_bytes_max: u64,
    /// Number of processes, or of threads that compute a module. Each handles one turn at a time;
    /// further turns wait.
    #[schemars(range(min = 1, max = 256))]
    pub processes: u32,
    /// Timeout in milliseconds of a program's turn. Then the process is killed and restarted.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout_ms: u64,
    /// Timeout in milliseconds for a new process to answer the handshake.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub start_timeout_ms: u64,
    /// Maximum bytes of an answer line, newline excluded. A process that writes a longer one is
    /// killed and restarted.
    #[schemars(range(min = 256, max = 67_108_864))]
    pub line_bytes_max: u64,
    /// Maximum restarts of one process within `restart_window_ms`; after one more its turns fail
    /// immediately until the window has passed.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Sliding window in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
    /// Names of environment variables to pass besides `PATH` and `LANG`. The program gets no
    /// others, so it sees no secret that is not named here.
    #[schemars(length(max = 256))]
    pub pass_env: Vec<String>,
}

impl OwnTask {
    /// The program, if the task is one.
    pub fn program(&self) -> Program {
        Program {
            command: self.command.clone(),
            processes: self.processes,
            timeout_ms: self.timeout_ms,
            start_timeout_ms: self.start_timeout_ms,
            line_bytes_max: self.line_bytes_max,
            restarts_max: self.restarts_max,
            restart_window_ms: self.restart_window_ms,
            pass_env: self.pass_env.clone(),
        }
    }
}

impl Default for OwnTask {
    fn default() -> Self {
        let Program {
            command,
            processes,
            timeout_ms,
            start_timeout_ms,
            line_bytes_max,
            restarts_max,
            restart_window_ms,
            pass_env,
        } = Program::default();
        Self {
            command,
            module: None,
            inputs: None,
            fuel_max: 200_000_000,
            memory_bytes_max: 64 << 20,
            processes,
            timeout_ms,
            start_timeout_ms,
            line_bytes_max,
            restarts_max,
            restart_window_ms,
            pass_env,
        }
    }
}

/// Checks that each task has a program and a name of its own.
pub(super) fn check_tasks(
    tasks: &BTreeMap<String, OwnTask>,
    conflict: &dyn Fn(&[&str], String) -> SettingsError,
) -> Result<(), SettingsError> {
    for (name, task) in tasks {
        if prime_bench::tasks::find(name).is_ok() || name == "problem" {
            let message =
                format!("`tasks.{name}` has the name of a built-in task; give it another one");
            return Err(conflict(&["tasks", name], message));
        }
        let wrong = match (task.command.is_empty(), task.module.is_none()) {
            (true, true) => format!(
                "`tasks.{name}.command` is empty; set it to the program and its arguments, \
                 such as [\"python3\", \"{name}.py\"], or set `module` to the file of a \
                 WebAssembly module"
            ),
            (false, false) => {
                format!("`tasks.{name}` has both a `command` and a `module`; leave out one of them")
            }
            (true, false) | (false, true) => continue,
        };
        return Err(conflict(&["tasks", name], wrong));
    }
    Ok(())
}
