//! `prime-agents man`: the manual pages, made from the same definitions as `--help`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap_mangen::{Man, generate_to};

#[derive(Args)]
pub struct ManArguments {
    /// Write the pages of all commands into this folder, which is made if it is not there; without it, the page of
    /// prime-agents itself is printed.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn man(arguments: &ManArguments, command: clap::Command) -> anyhow::Result<ExitCode> {
    // `prime-agents help run` says what `run --help` does: it needs no pages.
    let command = command.disable_help_subcommand(true);
    let Some(folder) = &arguments.dir else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        drop(std::io::stdout().write_all(&page));
        return Ok(ExitCode::SUCCESS);
    };
    let failed = || format!("--dir {}: the pages cannot be written", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    generate_to(command, folder).with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}
