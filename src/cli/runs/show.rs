//! `runs show`, and how all commands print a run's record.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::super::run::Output;
use super::client::ClientError;
use super::{Common, run_id};
use crate::runs::RunRecord;

#[derive(Args)]
pub struct ShowArguments {
    /// The run's id.
    #[arg(value_parser = run_id)]
    id: String,
    #[command(flatten)]
    common: Common,
}

/// A record for a person.
fn text(record: &RunRecord) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:>10}  {value}").expect("invariant: writing to a string succeeds");
    };
    line("id", &record.id);
    line("status", record.status.name());
    line("created", &record.created_at);
    line("updated", &record.updated_at);
    line("events", &format!("{}, chain {}", record.events, record.chain));
    if record.resumed > 0 {
        line("resumed", &format!("{} times, by another process each", record.resumed));
    }
    if let Some(origin) = &record.forked_from {
        line("forked", &format!("from {} at event {}", origin.run, origin.seq));
    }
    text + &record.result.text()
}

/// Prints a record; a reader that has gone away is no error.
///
/// # Errors
/// When it is to be text, and is no record that this version knows.
pub fn print(record: &Value, output: Output) -> anyhow::Result<()> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(record)? + "\n",
        Output::Text => text(&read(record)?),
    };
    drop(std::io::stdout().write_all(text.as_bytes()));
    Ok(())
}

/// A record as this version knows it.
///
/// # Errors
/// When it is none.
pub fn read(record: &Value) -> Result<RunRecord, ClientError> {
    serde::Deserialize::deserialize(record).map_err(|error| {
        let advice = "take the client of the daemon's version, or --output json";
        ClientError::Senseless(format!("the record cannot be read by this version: {error}: {advice}"))
    })
}

pub fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let ShowArguments { id, common } = arguments;
    let record = common.client()?.get(&format!("/v1/runs/{id}"), &[])?.json()?;
    print(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
