//! The configuration of a process agent: command, limits, environment. No logic here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that speaks the JSON Lines protocol of `docs/process-agents.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments, such as `["python3", "-B", "verifier.py"]`. Not run through a
    /// shell. A program without a `/` is searched in `PATH`; relative paths are relative to the
    /// working directory.
    #[schemars(length(max = 256))]
    pub command: Vec<String>,
    /// Number of processes. Each handles one turn at a time; further turns wait.
    #[schemars(range(min = 1, max = 256))]
    pub processes: u32,
    /// Timeout in milliseconds of a turn. Then the process is killed and restarted.
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
    /// immediately until the window has passed. The first restart is immediate; later ones follow
    /// with exponential backoff of up to 5 seconds. Killing a process because its turn was
    /// cancelled does not count.
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
