//! Checks the chat template of a model's file without loading the model.
//!
//! A short-lived child process renders it, because a hostile template may take any amount of
//! memory, and an engine's worker may not be running.

use super::chat::{Chat, error, today};
use super::devices::ask_child;
use super::worker::CHAT;
use super::worker_handle::worker_command;
use super::{EngineError, EngineSpec, Isolation};

/// Checks that the model's file has a chat template that can be rendered with the variables of the
/// specification.
///
/// # Errors
/// [`EngineError::Chat`], and errors of the file.
pub fn check_chat(spec: &EngineSpec) -> Result<(), EngineError> {
    // No child is needed to say that there is no template, or no such variable.
    let chat = Chat::read(&spec.model, &spec.template_variables, None, today())?;
    if spec.isolation == Isolation::Thread {
        return chat.check();
    }

    let variables = serde_json::to_string(&spec.template_variables).map_err(error)?;
    let mut command = worker_command(spec.worker.as_ref())
        .map_err(|error| EngineError::WorkerDied { detail: error.to_string() })?;
    command.arg(CHAT).arg(&spec.model).arg(variables);
    match ask_child(command) {
        Ok(checked) => checked,
        Err(EngineError::WorkerDied { detail }) => Err(error(format_args!(
            "rendering it ended the process that did it, perhaps for lack of memory: {detail}"
        ))),
        Err(other) => Err(other),
    }
}
