//! `runs trace`: downloads the trace of a run.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};

use super::client::{Client, ClientError};
use super::{Common, run_id};
use crate::cli::output::{stdout, written};
use prime_dataset::files::Whole;
use prime_service::runs::TraceContent;

#[derive(Args)]
pub struct TraceArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    /// Write to this file, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Leave out the states in which steps were proposed
    #[arg(long)]
    no_states: bool,
    /// Add to each step what its executor asked its model, and the completion: for training
    #[arg(long)]
    prompts: bool,
    #[command(flatten)]
    common: Common,
}

/// Opens a trace; also returns its URL, for errors.
///
/// # Errors
/// [`ClientError`].
pub fn open(
    client: &Client,
    id: &str,
    content: TraceContent,
) -> Result<(String, impl Read + use<>), ClientError> {
    let TraceContent { states, prompts } = content;
    let mut query = vec![("states", states.to_string())];
    query.extend(prompts.then(|| ("prompts", prompts.to_string())));
    let answer = client.get(&format!("/v1/runs/{id}/trace"), &query)?;
    Ok(answer.into_reader())
}

/// Why a copy ended early.
enum CopyError {
    Read(std::io::Error),
    Write(std::io::Error),
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<(), CopyError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return to.flush().map_err(CopyError::Write),
            Ok(count) => to.write_all(&buffer[..count]).map_err(CopyError::Write)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(CopyError::Read(error)),
        }
    }
}

fn broken_off(url: String, error: &std::io::Error) -> anyhow::Error {
    ClientError::BrokenOff { url, reason: error.to_string() }.into()
}

/// Copies into a file that gets its name at the end, so that a truncated trace is never mistaken
/// for a whole one.
fn copy_to_file(url: String, from: &mut impl Read, path: &Path) -> anyhow::Result<()> {
    let failed = || format!("--out {}: cannot be written", path.display());
    let mut file = Whole::uncompressed(path).with_context(failed)?;

    match copy(from, &mut file) {
        Ok(()) => file.finish().map(drop).with_context(failed),
        Err(CopyError::Read(error)) => Err(broken_off(url, &error)),
        Err(CopyError::Write(error)) => Err(error).with_context(failed),
    }
}

/// Writes what a daemon sends to a file, or to standard output.
///
/// # Errors
/// The daemon's answer breaks off, or the place cannot be written.
pub fn save(url: String, from: &mut impl Read, out: Option<&Path>) -> anyhow::Result<()> {
    // Devices and pipes are written in place.
    let place = out.map(|path| (path, path.metadata().map_or(true, |metadata| metadata.is_file())));

    match place {
        Some((path, true)) => copy_to_file(url, from, path),
        place => {
            let copied = match place {
                Some((path, _)) => {
                    let failed = || format!("--out {}: cannot be written", path.display());
                    copy(from, &mut File::options().write(true).open(path).with_context(failed)?)
                }
                None => copy(from, &mut stdout()),
            };
            match copied {
                Err(CopyError::Read(error)) => Err(broken_off(url, &error)),
                Err(CopyError::Write(error)) => Ok(written(Err(error))?),
                Ok(()) => Ok(()),
            }
        }
    }
}

pub fn trace(arguments: &TraceArguments) -> anyhow::Result<ExitCode> {
    let TraceArguments { id, out, no_states, prompts, common } = arguments;
    let content = TraceContent { states: !no_states, prompts: *prompts };
    let (url, mut from) = open(&common.client()?, id, content)?;
    save(url, &mut from, out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
