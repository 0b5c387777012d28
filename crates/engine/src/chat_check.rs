//! Checks the chat template of a model's file without loading the model.
//!
//! A short-lived child process renders it, because a hostile template may take any amount of
//! memory, and an engine's worker may not be running.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::chat::{Chat, TemplateVariables, error, today};
use super::devices::ask_child;
use super::worker::CHAT;
use super::worker_handle::worker_command;
use super::{EngineError, EngineSpec, Isolation, memory_limit};

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

/// What the child does: `engine-worker chat MODEL VARIABLES`.
pub(super) fn child(arguments: &[OsString]) -> Result<(), EngineError> {
    let [model, variables] = arguments else {
        return Err(error("the child needs a model and variables"));
    };
    let variables: TemplateVariables =
        serde_json::from_str(&variables.to_string_lossy()).map_err(error)?;
    let chat = Chat::read(Path::new(model), &variables, None, today())?;
    memory_limit::within(|| chat.check())
}

/// Writes the answer of a child as a frame to its standard output.
pub(super) fn answer(frame: &impl serde::Serialize, failed: u8) -> ExitCode {
    use std::io::Write as _;

    let mut out = Vec::new();
    let written = super::wire::encode(frame, &mut out).is_ok();
    #[expect(clippy::disallowed_methods, reason = "frames for the parent process, not text")]
    let mut stdout = std::io::stdout();
    if written && stdout.write_all(&out).is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(failed)
    }
}
