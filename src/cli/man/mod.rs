//! `prime-agents man`: the manual pages, from the definitions behind `--help` and the sections of
//! `sections.rs`.

mod examples;
mod sections;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::Man;

use super::output::print;

#[derive(Args)]
pub struct ManArguments {
    /// Write the pages of all commands into this folder, creating it if needed [default: print the
    /// page of prime-agents]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn man(arguments: &ManArguments, command: Command) -> anyhow::Result<ExitCode> {
    // `prime-agents help run` prints what `run --help` prints: it needs no page.
    let mut command = command.disable_help_subcommand(true);
    command.build();

    let Some(folder) = &arguments.dir else {
        print(page(&command)?)?;
        return Ok(ExitCode::SUCCESS);
    };

    let failed = || format!("--dir {}: the pages cannot be written", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    write_pages(&command, folder).with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(subcommand, folder)?;
    }
    std::fs::write(folder.join(Man::new(command.clone()).get_filename()), page(command)?)
}

fn page(command: &Command) -> std::io::Result<String> {
    let man = Man::new(command.clone()).manual("prime-agents");
    let mut page = Vec::new();

    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }

    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    page.extend_from_slice(sections::of(name).as_bytes());
    man.render_version_section(&mut page)?;
    Ok(ascii(&String::from_utf8_lossy(&page)))
}

/// The page with roff's names for other characters: not every reader of manuals takes UTF-8.
fn ascii(page: &str) -> String {
    let named =
        |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    page.chars().map(named).collect()
}
