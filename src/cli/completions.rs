//! `prime-agents completions`: what a shell needs to complete the command line.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};

#[derive(Args)]
pub struct CompletionsArguments {
    /// The shell that is to complete.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn completions(arguments: &CompletionsArguments, mut command: clap::Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    drop(std::io::stdout().write_all(&script));
    ExitCode::SUCCESS
}
