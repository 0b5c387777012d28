//! The child process that checks a chat template.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::chat::{Chat, TemplateVariables, error, today};
use super::{EngineError, memory_limit};

/// Runs the child: `engine-worker chat MODEL VARIABLES`.
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
