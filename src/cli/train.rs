//! `prime-agents train`: runs the trainer, a separate program so that servers need not build it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::anyhow;
use clap::Args;

const TRAINER: &str = "prime-train";

#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct TrainArguments {
    /// Arguments of prime-train, such as `sft --recipe FILE`; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// The trainer beside this executable, or else the one in `PATH`.
fn trainer() -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name(TRAINER))
        .filter(|path| path.is_file());
    beside.unwrap_or_else(|| PathBuf::from(TRAINER))
}

pub fn train(arguments: &TrainArguments) -> anyhow::Result<ExitCode> {
    let started = Command::new(trainer()).args(&arguments.arguments).status();
    let status = started.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "`{TRAINER}` is neither beside this program nor in PATH: build it with `cargo build \
             --release -p {TRAINER}`"
        ),
        _ => anyhow!("`{TRAINER}` cannot be started: {error}"),
    })?;

    // A process killed by a signal has no exit code.
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
