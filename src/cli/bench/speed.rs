//! `bench speed`: how fast instances are drawn, references run and steps judged.

use std::process::ExitCode;

use clap::Args;

use super::super::run::Output;
use super::{Chosen, say, table};
use crate::bench::speed::{SpeedRow, speed as measure};

#[derive(Args)]
pub struct SpeedArguments {
    #[command(flatten)]
    chosen: Chosen,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn text(rows: &[SpeedRow]) -> String {
    let header = ["task", "instances", "steps", "drawing s", "reference s", "reference M steps/s", "judged M steps/s"];
    let cells = |row: &SpeedRow| {
        vec![
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
        "{}\n{} instances, {} steps: drawn in {:.1} s, references in {:.1} s, on one thread\n",
        table(&header, rows.iter().map(cells)),
        rows.iter().map(|row| row.instances).sum::<u64>(),
        rows.iter().map(|row| row.steps).sum::<u64>(),
        sum(|row| row.drawing_s),
        sum(|row| row.reference_s),
    )
}

pub fn speed(arguments: &SpeedArguments) -> anyhow::Result<ExitCode> {
    let selection = arguments.chosen.selection();
    let rows: Vec<SpeedRow> = arguments.chosen.tasks()?.iter().map(|task| measure(*task, &selection)).collect();
    match arguments.output {
        Output::Json => say(&(serde_json::to_string_pretty(&rows)? + "\n")),
        Output::Text => say(&text(&rows)),
    }
    Ok(ExitCode::SUCCESS)
}
