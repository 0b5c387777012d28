//! `bench solve`: PRIME as configured against a single pass without a verifier.

use std::process::ExitCode;

use super::measurement::{Measurement, system, with_engines};
use crate::agents::Resources;
use crate::app::runtime_plan;
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::solve::{SolveRow, solve as measure};
use crate::settings::Settings;
use prime_bench::tasks::AnyTask;

/// One trajectory without a verifier.
fn single_pass(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    "none".clone_into(&mut settings.agents.verifier.implementation);
    settings.run.fanout = 1;
    settings.run.max_rounds = 1;
    settings
}

fn table(rows: &[SolveRow]) -> Table {
    let header = [
        "task",
        "level",
        "system",
        "accuracy % (95 %)",
        "verified",
        "of them wrong",
        "steps",
        "proposals",
        "prompt tokens",
        "completion tokens",
        "seconds",
    ];
    let cells = |row: &SolveRow| {
        [
            row.task.to_owned(),
            row.difficulty.to_string(),
            row.system.to_owned(),
            row.accuracy.text(),
            row.verified.to_string(),
            row.verified_wrong.to_string(),
            format!("{:.1}", row.steps),
            format!("{:.1}", row.proposals),
            format!("{:.0}", row.prompt_tokens),
            format!("{:.0}", row.completion_tokens),
            format!("{:.1}", row.seconds),
        ]
    };
    Table::new(header, rows.iter().map(cells))
}

pub fn solve(measurement: &Measurement) -> anyhow::Result<ExitCode> {
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let tasks = measurement.tasks()?;
    let (rows, finished) = with_engines([&settings], async |resources| {
        let mut session = Session::start(2 * tasks.len() * measurement.difficulties.len(), "measurement")?;
        let rows = rows(measurement, &settings, resources, &tasks, &mut session).await?;
        Ok((rows, session.finish()))
    })?;
    measurement.print_rows(&rows, table)?;
    Ok(finished.exit_code())
}

async fn rows(
    measurement: &Measurement,
    settings: &Settings,
    resources: &Resources,
    tasks: &[&'static dyn AnyTask],
    session: &mut Session,
) -> anyhow::Result<Vec<SolveRow>> {
    let runtime = runtime_plan(settings);
    let mut rows = Vec::new();
    for task in tasks {
        for instances in measurement.levels() {
            for (name, settings) in [("single pass", single_pass(settings)), ("PRIME", settings.clone())] {
                let system = system(&settings, resources)?;
                let row = async { measure(name, system, &runtime, *task, instances).await.map_err(anyhow::Error::msg) };
                let Some(row) = session.next(row).await? else { return Ok(rows) };
                session.note(&format!("{} {} {}: {}", row.task, row.difficulty, row.system, row.accuracy.text()));
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
