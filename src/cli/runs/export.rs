//! `runs export`: a run that is over as a file for another daemon or another tool.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum, ValueHint};

use super::trace::save;
use super::{Common, run_id};

#[derive(Args)]
pub struct ExportArguments {
    /// Run id; the run must be over
    #[arg(value_parser = run_id)]
    id: String,
    /// The form: bundle (the run with its chain, for `runs import`), otel (OpenTelemetry spans, for
    /// a collector's file receiver) or dataset (a row with the columns of `bench export`)
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = Form::Bundle)]
    form: Form,
    /// With --as otel: add what models were asked and answered, as far as the journal keeps it
    #[arg(long)]
    content: bool,
    /// Write to this file, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Bundle,
    Otel,
    Dataset,
}

pub fn export(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let ExportArguments { id, form, content, out, common } = arguments;
    anyhow::ensure!(!content || *form == Form::Otel, "--content: goes with --as otel alone");
    let name = match form {
        Form::Bundle => "bundle",
        Form::Otel => "otel",
        Form::Dataset => "dataset",
    };

    let mut query = vec![("as", name.to_owned())];
    query.extend(content.then(|| ("content", "true".to_owned())));
    let answer = common.client()?.get(&format!("/v1/runs/{id}/export"), &query)?;
    let (url, mut from) = answer.into_reader();
    save(url, &mut from, out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
