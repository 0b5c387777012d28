//! `prime-agents train`: runs the trainer, a separate program so that servers need not build it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::anyhow;
use clap::Args;

use super::output::print;

const TRAINER: &str = "prime-train";

/// What `train --help` says where the trainer is not built; its own help has the options.
const HELP: &str = "\
Train a model for an agent (runs prime-train, which is not built here: `make trainer`, or `cargo \
build --release -p prime-train`)

Usage: prime-agents train <COMMAND>

Commands:
  sft      Supervised training of an executor or a verifier on reference traces
  plan     What a supervised training will cost: tokens, hours and the length of the samples
  rl       Reinforcement learning of an executor from its own attempts
  convert  Write a model that was trained here with matrices of another element type
  average  Write the average of two models that were trained here

Examples:
  prime-agents train plan --recipe models/prime-tiny.toml
  prime-agents train sft --recipe models/prime-tiny.toml --out my.gguf
";

/// True if the arguments ask for help, or ask for nothing.
fn asks_for_help(arguments: &[OsString]) -> bool {
    let is_help =
        |argument: &OsString| ["--help", "-h", "help"].iter().any(|known| argument == *known);
    arguments.is_empty() || arguments.iter().any(is_help)
}

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
    let is_missing = started.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_missing && asks_for_help(&arguments.arguments) {
        print(HELP)?;
        return Ok(ExitCode::SUCCESS);
    }

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
