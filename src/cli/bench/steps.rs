//! `bench steps`: the single-step accuracy of the executor.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::Args;

use super::measurement::{Measurement, with_engines};
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::single_step::{AskedStep, StepRow, Walk, step_accuracy};
use prime_agent_set::{AgentSet, Agents};

#[derive(Args)]
pub struct StepsArguments {
    #[command(flatten)]
    measurement: Measurement,
    /// Ask after a walk of this many steps from the start, which a prompt with a history shows,
    /// instead of at random states of reference traces
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    walk: Option<u32>,
    /// Share of the walk's steps that are wrong, though they can be carried out, from 0 to 1
    #[arg(long, value_name = "RATE", default_value_t = 0.0, requires = "walk", value_parser = rate)]
    errors: f64,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if (0.0..=1.0).contains(&rate) { Ok(rate) } else { Err("it must be from 0 to 1".to_owned()) }
}

fn table(rows: &[StepRow]) -> Table {
    let cells = |row: &StepRow| {
        [
            row.task.to_owned(),
            row.difficulty.to_string(),
            row.accuracy.of.to_string(),
            row.accuracy.text(),
            format!("{:.1}", row.completion_tokens),
        ]
    };
    Table::new(
        ["task", "level", "steps", "accuracy % (95 %)", "tokens/step"],
        rows.iter().map(cells),
    )
}

pub fn steps(arguments: &StepsArguments) -> anyhow::Result<ExitCode> {
    let measurement = &arguments.measurement;
    let walk = arguments.walk.map(|steps| Walk { steps, error_rate: arguments.errors });
    let settings = measurement.configuration.load()?;
    start_log(&settings);
    let opened = measurement.all_tasks(&settings)?;
    let tasks = &opened.tasks;
    let (rows, finished) = with_engines([&settings], None, async |resources| {
        let executor = AgentSet::from_settings(&settings, resources)?.executor();
        let units = tasks.iter().map(|task| measurement.levels_of(*task).count()).sum();
        let steps = u64::from(measurement.instances);
        let mut session = Session::with_parts(vec![steps; units], "measurement", "step")?;

        let mut rows = Vec::new();
        for task in tasks {
            for instances in measurement.levels_of(*task) {
                let difficulty = instances.level(*task);
                let (on_part, done) = (session.on_part(), RefCell::new(Vec::new()));
                let on_step = |step: AskedStep| {
                    done.borrow_mut().push(step);
                    on_part();
                };
                let row = async {
                    step_accuracy(executor.as_ref(), *task, instances, walk, &on_step)
                        .await
                        .map_err(anyhow::Error::msg)
                };

                // When the command is asked to stop, the steps that are done make a row of their
                // own.
                let Some(row) = session.next(row).await? else {
                    let done = done.take();
                    if !done.is_empty() {
                        let (slug, of) = (task.spec().slug, instances.count);
                        session.note(&format!("{slug} {difficulty}: {} of {of} steps", done.len()));
                        rows.push(StepRow::of(slug, difficulty, &done));
                    }
                    return Ok((rows, session.finish()));
                };
                rows.push(row);
            }
        }
        Ok((rows, session.finish()))
    })?;

    measurement.print_rows(&rows, table)?;
    Ok(finished.exit_code())
}
