//! A program that plays a role: how it is started, and the limits of its turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that speaks JSON Lines, as `docs/process-agents.md` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments, such as `["python3", "-B", "verifier.py"]`. No shell reads it. A program without a
    /// `/` is looked for in `PATH`; relative paths start at the working directory.
    #[schemars(length(max = 256))]
    pub command: Vec<String>,
    /// Processes of the program that run side by side. Each does one turn at a time; further turns wait.
    #[schemars(range(min = 1, max = 256))]
    pub processes: u32,
    /// Longest time in milliseconds that one turn may take. Then the process is killed and started again.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout_ms: u64,
    /// Longest time in milliseconds until a process that was started has answered the greeting.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub start_timeout_ms: u64,
    /// Most bytes of an answer's line, without its end. A process that writes a longer one is killed and started again.
    #[schemars(range(min = 256, max = 67_108_864))]
    pub line_bytes_max: u64,
    /// Most restarts of one process within `restart_window_ms`; with one more, its turns fail at once until the window
    /// has passed. The first restart is made at once, each further one in the window after twice the wait, up to 5
    /// seconds. A process that is killed because its turn was given up does not count.
    #[schemars(range(min = 0, max = 1_000))]
    pub restarts_max: u32,
    /// Time in milliseconds over which restarts are counted.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub restart_window_ms: u64,
    /// Names of environment variables that the program gets, beside `PATH` and `LANG`. It gets no others, so that no
    /// secret reaches it that is not named here.
    #[schemars(length(max = 256))]
    pub pass_env: Vec<String>,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            processes: 1,
            timeout_ms: 30_000,
            start_timeout_ms: 30_000,
            line_bytes_max: 1 << 20,
            restarts_max: 5,
            restart_window_ms: 60_000,
            pass_env: Vec::new(),
        }
    }
}
