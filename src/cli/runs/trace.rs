//! `runs trace`: a run's record for study, as it comes from the daemon.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use super::client::{Client, ClientError};
use super::{Common, run_id};

#[derive(Args)]
pub struct TraceArguments {
    /// The run's id.
    #[arg(value_parser = run_id)]
    id: String,
    /// Write to this file, which is there when it is complete; without it, to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out the state that each step was proposed in.
    #[arg(long)]
    no_states: bool,
    #[command(flatten)]
    common: Common,
}

/// A run's trace: its URL, for errors, and what comes from there.
///
/// # Errors
/// [`ClientError`].
pub fn open(client: &Client, id: &str, states: bool) -> Result<(String, impl Read + use<>), ClientError> {
    let answer = client.get(&format!("/v1/runs/{id}/trace"), &[("states", states.to_string())])?;
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

/// Copies into a file beside `path`, which gets its name at the end: a trace that was cut off is never taken for whole.
fn copy_to_file(url: String, from: &mut impl Read, path: &Path) -> anyhow::Result<()> {
    let failed = || format!("--out {}: cannot be written", path.display());
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let copied = copy(from, &mut File::create(&part).with_context(failed)?);
    let result = match copied {
        Ok(()) => std::fs::rename(&part, path).with_context(failed),
        Err(CopyError::Read(error)) => Err(broken_off(url, &error)),
        Err(CopyError::Write(error)) => Err(error).with_context(failed),
    };
    if result.is_err() {
        // What is left of it is of no use, and whether it can be removed changes nothing.
        drop(std::fs::remove_file(&part));
    }
    result
}

pub fn trace(arguments: &TraceArguments) -> anyhow::Result<ExitCode> {
    let TraceArguments { id, out, no_states, common } = arguments;
    let (url, mut from) = open(&common.client()?, id, !no_states)?;
    // Devices and pipes are written to as they are.
    let place = out.as_deref().map(|path| (path, path.metadata().map_or(true, |metadata| metadata.is_file())));
    match place {
        Some((path, true)) => copy_to_file(url, &mut from, path)?,
        place => {
            let copied = match place {
                Some((path, _)) => {
                    let failed = || format!("--out {}: cannot be written", path.display());
                    copy(&mut from, &mut File::options().write(true).open(path).with_context(failed)?)
                }
                None => copy(&mut from, &mut std::io::stdout().lock()),
            };
            match copied {
                Err(CopyError::Read(error)) => return Err(broken_off(url, &error)),
                // A reader that closed the pipe has seen enough.
                Err(CopyError::Write(error)) if error.kind() != ErrorKind::BrokenPipe => {
                    return Err(error).context("the trace cannot be written");
                }
                _ => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
