//! What can be wrong with a program: with its configuration, and in a turn.

use std::io;

use crate::agents::{AgentError, Failure};

/// Characters of a line that a message shows.
const SHOWN_CHARS: usize = 120;

/// A program that cannot be used at all, found before it is started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("{agent}: no program is named; set its `command`, such as [\"python3\", \"-B\", \"agent.py\"]")]
    NoCommand { agent: String },
    #[error("{agent}: the thread that drives its processes could not be started: {reason}")]
    NoThread { agent: String, reason: io::Error },
}

/// Why a turn, or a start, came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub failure: Failure,
    /// A sentence whose subject is the program.
    pub reason: String,
    /// The program ended, or seems to have: what its exit says comes on top.
    pub is_end: bool,
}

impl Fault {
    pub fn new(failure: Failure, reason: impl Into<String>) -> Self {
        Self { failure, reason: reason.into(), is_end: false }
    }

    /// A stream was closed, most likely because the program ended.
    pub fn closed(stream: &'static str) -> Self {
        Self { failure: Failure::Died, reason: format!("it closed its {stream}"), is_end: true }
    }

    pub fn error(self, agent: &str) -> AgentError {
        AgentError::new(agent, self.failure, self.reason)
    }
}

/// The beginning of a line, for a message.
pub(super) fn shown(line: &[u8]) -> String {
    // A character takes at most four bytes; the rest need not be looked at.
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN_CHARS)]);
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if head.len() < line.len() { "…" } else { "" };
    format!("{head:?}{more}")
}
