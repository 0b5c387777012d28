//! `prime-agents schedules`: what a daemon starts at times of the clock.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::print;
use super::runs::{Common, Post, as_refusal};
use super::table::Table;
use prime_service::runs::ScheduleReport;

#[derive(Args)]
pub struct SchedulesArguments {
    #[command(subcommand)]
    command: SchedulesCommand,
}

#[derive(Subcommand)]
enum SchedulesCommand {
    /// List the schedules of a daemon, with their next times and last runs
    List(ListArguments),
    /// List the next times of all schedules, or of one
    Next(NextArguments),
    /// Start a run of a schedule now and print its id
    Run(RunArguments),
}

#[derive(Args)]
struct ListArguments {
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct NextArguments {
    /// The name of a schedule
    name: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct RunArguments {
    /// The name of a schedule
    #[arg(value_parser = name)]
    name: String,
    #[command(flatten)]
    common: Common,
}

/// What the daemon answers.
#[derive(Deserialize, Serialize)]
struct Listed {
    schedules: Vec<ScheduleReport>,
}

/// Checks that a name is safe within a path; that the schedule exists is checked by the daemon.
fn name(text: &str) -> Result<String, String> {
    if prime_settings::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("a schedule's name has lower-case letters, digits, `-` and `_`".to_owned())
    }
}

fn listed(common: &Common) -> anyhow::Result<Listed> {
    Ok(common.client()?.get("/v1/schedules", &[])?.json()?)
}

fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let common = &arguments.common;
    let listed = listed(common)?;
    print(common.output(), &listed, || {
        let rows = listed.schedules.iter().map(|schedule| {
            [
                schedule.name.clone(),
                schedule.task.clone(),
                schedule.cron.clone(),
                schedule.timezone.clone(),
                schedule.next.first().cloned().unwrap_or_default(),
                schedule.last_run.clone().unwrap_or_default(),
            ]
        });
        let header = ["name", "task", "cron", "timezone", "next", "last run"];
        let failures = listed.schedules.iter().filter_map(|schedule| {
            let failure = schedule.failure.as_ref()?;
            Some(format!("{} could not start its last run: {failure}\n", schedule.name))
        });
        let table = Table::new(header, rows).may_drop(&["timezone", "task", "last run"]);
        format!("{table}\n{}", failures.collect::<String>())
    })?;
    Ok(())
}

fn next(arguments: &NextArguments) -> anyhow::Result<()> {
    let NextArguments { name, common } = arguments;
    let mut listed = listed(common)?;
    if let Some(name) = name {
        listed.schedules.retain(|schedule| schedule.name == *name);
        if listed.schedules.is_empty() {
            anyhow::bail!(
                "there is no schedule {name:?}: `schedules list` shows those of the daemon"
            );
        }
    }

    let mut times: Vec<_> = listed
        .schedules
        .iter()
        .flat_map(|schedule| schedule.next.iter().map(|time| [time.clone(), schedule.name.clone()]))
        .collect();
    times.sort();
    print(common.output(), &listed, || {
        format!("{}\n", Table::new(["time", "schedule"], times.clone()))
    })?;
    Ok(())
}

fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let RunArguments { name, common } = arguments;
    let path = format!("/v1/schedules/{name}/runs");
    let record: Value = common.client()?.post(&Post { path: &path, ..Post::default() })?.json()?;
    print(common.output(), &record, || format!("{}\n", record["id"].as_str().unwrap_or_default()))?;
    Ok(())
}

pub fn schedules(arguments: &SchedulesArguments) -> anyhow::Result<ExitCode> {
    let done = match &arguments.command {
        SchedulesCommand::List(arguments) => list(arguments),
        SchedulesCommand::Next(arguments) => next(arguments),
        SchedulesCommand::Run(arguments) => run(arguments),
    };
    as_refusal(done.map(|()| ExitCode::SUCCESS))
}
