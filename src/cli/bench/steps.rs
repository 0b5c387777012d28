//! `bench steps`: the single-step accuracy of the executor.

use std::cell::RefCell;
use std::process::ExitCode;

use super::measurement::{Measurement, with_engines};
use crate::cli::progress::Session;
use crate::cli::start_log;
use crate::cli::table::Table;
use crate::evaluation::single_step::{AskedStep, StepRow, step_accuracy};
use prime_agent_set::{AgentSet, Agents};

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

pub fn steps(measurement: &Measurement) -> anyhow::Result<ExitCode> {
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
                    step_accuracy(executor.as_ref(), *task, instances, &on_step)
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
