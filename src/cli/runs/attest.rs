//! `runs attest`: fetches what the daemon signs about a run that is over.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use serde_json::Value;

use super::{Common, run_id};
use crate::cli::output::print;
use prime_dataset::files::Whole;

#[derive(Args)]
pub struct AttestArguments {
    /// Run id; the run must be over
    #[arg(value_parser = run_id)]
    id: String,
    /// Write to this file, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

pub fn attest(arguments: &AttestArguments) -> anyhow::Result<ExitCode> {
    let AttestArguments { id, out, common } = arguments;
    let client = common.client()?;
    let envelope = client.get(&format!("/v1/runs/{id}/attestation"), &[])?.json::<Value>()?;
    let text = serde_json::to_string_pretty(&envelope)? + "\n";

    let Some(path) = out else {
        print(text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let failed = || format!("--out {}: cannot be written", path.display());
    let mut file = Whole::uncompressed(path).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.finish().with_context(failed)?;
    Ok(ExitCode::SUCCESS)
}
