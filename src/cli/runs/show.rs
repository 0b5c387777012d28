//! `runs show`: prints a record, for the other commands as well.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::client::{ClientError, known};
use super::{Common, run_id};
use crate::cli::output::{self, Output, count};
use prime_service::runs::{Imported, RunRecord};

#[derive(Args)]
pub struct ShowArguments {
    /// Run id
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
    if let Some(missing) = &record.waiting_for {
        line("waits for", missing);
    }
    if let Some(priority) = record.priority {
        line("priority", &priority.to_string());
    }
    for (name, time) in [("not before", &record.not_before), ("deadline", &record.deadline)] {
        if let Some(time) = time {
            line(name, time);
        }
    }
    line("created", &record.created_at);
    line("updated", &record.updated_at);
    line("events", &format!("{}, chain {}", record.events, record.chain));

    if record.resumed > 0 {
        line(
            "resumed",
            &format!("{}, each by another process", count(record.resumed.into(), "time")),
        );
    }
    if let Some(origin) = &record.forked_from {
        line("forked", &format!("from {} at event {}", origin.run, origin.seq));
    }

    if let Some(run) = &record.retry_of {
        line("retry of", run);
    }
    for run in &record.retried_as {
        line("retried as", run);
    }
    if let Some(imported) = &record.imported {
        let Imported { node, program, at, other_program, .. } = imported;
        let other = if *other_program { "; its task has another program here" } else { "" };
        let text = format!("at {at}, from {node} (version {program}), not judged here{other}");
        line("imported", &text);
    }

    for (name, value) in &record.labels {
        line("label", &format!("{name}: {value}"));
    }

    text + &record.result.text()
}

/// Prints a record.
///
/// # Errors
/// When this version cannot read the record as text, or standard output cannot be written.
pub fn print(record: &Value, output: Output) -> anyhow::Result<()> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(record)? + "\n",
        Output::Text => output::wrapped(&text(&read(record)?), output::columns()),
    };
    output::print(text)?;
    Ok(())
}

/// # Errors
/// When this version cannot read the record.
pub fn read(record: &Value) -> Result<RunRecord, ClientError> {
    known("record", record)
}

pub fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let ShowArguments { id, common } = arguments;
    let record = common.client()?.get(&format!("/v1/runs/{id}"), &[])?.json()?;
    print(&record, common.output)?;
    Ok(ExitCode::SUCCESS)
}
