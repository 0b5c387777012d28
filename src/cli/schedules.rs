//! `prime-agents schedules`: what a daemon starts at times of the clock.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::output::{Output, note, print, print_json};
use super::runs::{Common, Post, as_refusal, print_accepted};
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
    let listed = listed(&arguments.common)?;
    if arguments.common.output() == Output::Json {
        return Ok(print_json(&listed)?);
    }

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
    let table = Table::new(["name", "task", "cron", "timezone", "next", "last run"], rows);
    print(table.may_drop(&["timezone", "task", "last run"]))?;
    for schedule in &listed.schedules {
        if let Some(failure) = &schedule.failure {
            note!("{} could not start its last run: {failure}", schedule.name);
        }
    }
    Ok(())
}

fn next(arguments: &NextArguments) -> anyhow::Result<()> {
    let NextArguments { name, common } = arguments;
    let mut listed = listed(common)?;
    if let Some(name) = name {
        listed.schedules.retain(|schedule| schedule.name == *name);
        if listed.schedules.is_empty() {
            bail!("there is no schedule {name:?}: `schedules list` shows those of the daemon");
        }
    }
    if common.output() == Output::Json {
        return Ok(print_json(&listed)?);
    }

    let of = |schedule: &ScheduleReport| {
        let times = schedule.next.iter();
        times.map(|time| [time.clone(), schedule.name.clone()]).collect::<Vec<_>>()
    };
    let mut times: Vec<_> = listed.schedules.iter().flat_map(of).collect();
    times.sort();
    Ok(print(Table::new(["time", "schedule"], times))?)
}

fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let RunArguments { name, common } = arguments;
    let path = format!("/v1/schedules/{name}/runs");
    let record = common.client()?.post(&Post { path: &path, ..Post::default() })?.json()?;
    print_accepted(&record, common.output())
}

pub fn schedules(arguments: &SchedulesArguments) -> anyhow::Result<ExitCode> {
    let done = match &arguments.command {
        SchedulesCommand::List(arguments) => list(arguments),
        SchedulesCommand::Next(arguments) => next(arguments),
        SchedulesCommand::Run(arguments) => run(arguments),
    };
    as_refusal(done.map(|()| ExitCode::SUCCESS))
}
