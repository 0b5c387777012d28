//! `prime-agents man`: the manual pages, from the definitions behind `--help` and the sections of
//! `sections.rs`.

mod evaluation_examples;
mod examples;
mod help_examples;
mod plain;
mod sections;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::Man;

use super::output::{is_stdout_terminal, print};

pub use help_examples::with_examples;

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
        let page = page(&command)?;
        if !is_stdout_terminal() {
            print(page)?;
        } else if show(&page).is_err() {
            // There is no `man` here.
            print(plain::text(&page))?;
        }
        return Ok(ExitCode::SUCCESS);
    };

    let failed = || format!("--dir {}: the pages cannot be written", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    write_pages(&command, folder).with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a page as `man` shows its own, with the reader's pager.
///
/// # Errors
/// There is no `man`, or it cannot show the page.
fn show(page: &str) -> io::Result<()> {
    let mut man = process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn()?;
    let written = man.stdin.take().map_or(Ok(()), |mut input| input.write_all(page.as_bytes()));
    let status = man.wait()?;
    // A reader who leaves the pager early closes the pipe.
    if written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) || !status.success() {
        return Err(io::Error::other("man failed"));
    }
    Ok(())
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
