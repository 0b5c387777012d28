//! Errors of opening an instance of a task that is a program.

use crate::AgentError;

/// Why an instance of a program's task cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No such task is configured.
    #[error("there is no task `{name}`: {}", configured(known))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names of the configured tasks.
        known: Vec<String>,
    },
    /// The program refuses the input.
    #[error("{task}: {reason}")]
    Refused {
        /// Name of the task.
        task: &'static str,
        /// Why, as the program says it.
        reason: String,
    },
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
