//! `bench speed`: how fast instances are generated, references run and steps checked.

use std::process::ExitCode;

use clap::Args;

use super::{Chosen, measure_tasks};
use crate::cli::output::{Output, count, print};
use crate::cli::table::Table;
use crate::evaluation::task_speed::{SpeedRow, task_speed};

#[derive(Args)]
pub struct SpeedArguments {
    #[command(flatten)]
    chosen: Chosen,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn text(rows: &[SpeedRow]) -> String {
    let header =
        ["task", "instances", "steps", "generate s", "reference s", "reference M/s", "judged M/s"];
    let cells = |row: &SpeedRow| {
        [
            row.task.to_owned(),
            row.instances.to_string(),
            row.steps.to_string(),
            format!("{:.3}", row.drawing_s),
            format!("{:.3}", row.reference_s),
            format!("{:.2}", row.reference_steps_per_s / 1e6),
            format!("{:.2}", row.judged_steps_per_s / 1e6),
        ]
    };

    let sum = |of: fn(&SpeedRow) -> f64| rows.iter().map(of).sum::<f64>();
    format!(
        "{}\n{}, {}: generated in {:.1} s, references in {:.1} s, on one thread\n",
        Table::new(header, rows.iter().map(cells)),
        count(rows.iter().map(|row| row.instances).sum(), "instance"),
        count(rows.iter().map(|row| row.steps).sum(), "step"),
        sum(|row| row.drawing_s),
        sum(|row| row.reference_s),
    )
}

pub fn speed(arguments: &SpeedArguments) -> anyhow::Result<ExitCode> {
    let selection = arguments.chosen.selection();
    let (rows, finished) =
        measure_tasks(arguments.chosen.tasks()?, move |task| task_speed(task, &selection))?;

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
        Output::Text => print(text(&rows))?,
    }
    Ok(finished.exit_code())
}
