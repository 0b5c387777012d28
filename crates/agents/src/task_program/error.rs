//! Why an instance of a task that is a program cannot be had.

use crate::AgentError;

/// Why an instance of a program's task cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No such task is configured.
    #[error("there is no task `{name}`: {}", configured(known))]
    Unknown { name: String, known: Vec<String> },
    /// The program refuses the input.
    #[error("{task}: {reason}")]
    Refused { task: &'static str, reason: String },
    /// The program cannot be asked, or contradicts itself.
    #[error(transparent)]
    Program(#[from] AgentError),
}

fn configured(known: &[String]) -> String {
    if known.is_empty() {
        "none is configured (`tasks`)".to_owned()
    } else {
        format!("configured (`tasks`): {}", known.join(", "))
    }
}
