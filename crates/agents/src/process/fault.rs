//! Errors of process agents: of the configuration, and of a turn.

use std::io;

use crate::{AgentError, Failure};

/// How much of a line a message quotes, in characters.
const SHOWN_CHARS: usize = 120;

/// A program that cannot be used, found before it is started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The configuration gives no command.
    #[error(
        "{agent}: no program is configured; set its `command`, such as [\"python3\", \"-B\", \
         \"agent.py\"]"
    )]
    NoCommand {
        /// Role and name of the agent, as messages show it.
        agent: String,
    },
    /// The system refuses another thread.
    #[error("{agent}: cannot start the thread that drives its processes: {reason}")]
    NoThread {
        /// Role and name of the agent, as messages show it.
        agent: String,
        /// The system's message.
        reason: io::Error,
    },
}

/// Why a turn or a start failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessFault {
    pub failure: Failure,
    /// A clause whose subject is the program.
    pub reason: String,
    /// True if the program has probably exited; then its exit status is added to the reason.
    pub has_exited: bool,
}

impl ProcessFault {
    pub fn new(failure: Failure, reason: impl Into<String>) -> Self {
        Self { failure, reason: reason.into(), has_exited: false }
    }

    /// A stream was closed, most likely because the program exited.
    pub fn closed(stream: &'static str) -> Self {
        Self { failure: Failure::Died, reason: format!("it closed its {stream}"), has_exited: true }
    }

    /// The program has exited.
    pub fn exited() -> Self {
        Self { failure: Failure::Died, reason: "it exited".to_owned(), has_exited: true }
    }

    pub fn error(self, agent: &str) -> AgentError {
        AgentError::new(agent, self.failure, self.reason)
    }
}

/// Quotes the beginning of a line.
pub(super) fn quoted(line: &[u8]) -> String {
    // A character has at most four bytes, so this has one more than is shown if the line has.
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * (SHOWN_CHARS + 1))]);
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("{head:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_says_whether_there_is_more() {
        for (character, shown) in [
            (&b"x"[..], "x"),
            ("é".as_bytes(), "é"),
            ("🙂".as_bytes(), "🙂"),
            (b"\xff", "\u{fffd}"),
        ] {
            let whole = format!("{:?}", shown.repeat(SHOWN_CHARS));
            assert_eq!(quoted(&character.repeat(SHOWN_CHARS)), whole);
            for count in [SHOWN_CHARS + 1, 10 * SHOWN_CHARS] {
                assert_eq!(
                    quoted(&character.repeat(count)),
                    format!("{whole}…"),
                    "{count} of {shown}"
                );
            }
        }
        assert_eq!(quoted(b""), "\"\"");
    }
}
