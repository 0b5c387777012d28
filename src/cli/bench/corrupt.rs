//! `bench corrupt`: what checks see of traces with one wrong step.

use std::process::ExitCode;

use clap::Args;

use super::super::run::Output;
use super::{say, table};
use crate::bench::corruption::{CorruptionRow, corrupt as measure};
use prime_bench::tasks::{self, AnyTask, BASE_SEED};

#[derive(Args)]
pub struct CorruptArguments {
    /// A task; all by default.
    #[arg(long = "task", value_name = "TASK")]
    tasks: Vec<String>,
    /// Traces of each task, each with one corruption.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    traces: u64,
    #[arg(long, default_value_t = BASE_SEED)]
    base_seed: u64,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn text(rows: &[CorruptionRow]) -> String {
    let percent = |found: u64, of: u64| format!("{:.1}", 100.0 * found as f64 / of.max(1) as f64);
    let cells = |row: &CorruptionRow| {
        vec![
            row.task.to_owned(),
            row.corrupted.to_string(),
            percent(row.found_at_step, row.corrupted),
            percent(row.found_by_invariants, row.corrupted),
        ]
    };
    let sum = |of: fn(&CorruptionRow) -> u64| rows.iter().map(of).sum::<u64>();
    let corrupted = sum(|row| row.corrupted);
    format!(
        "{}\n{corrupted} corrupted traces: {} % found at their step by all kinds, {} % by format, invariant and terminal \
         constraints\n",
        table(&["task", "corrupted", "all kinds, at the step %", "without transition %"], rows.iter().map(cells)),
        percent(sum(|row| row.found_at_step), corrupted),
        percent(sum(|row| row.found_by_invariants), corrupted),
    )
}

pub fn corrupt(arguments: &CorruptArguments) -> anyhow::Result<ExitCode> {
    let named = arguments.tasks.iter().map(|slug| tasks::find(slug)).collect::<Result<Vec<_>, _>>()?;
    let chosen: Vec<&'static dyn AnyTask> = if named.is_empty() { tasks::all().collect() } else { named };
    let rows: Vec<_> = chosen.into_iter().map(|task| measure(task, arguments.traces, arguments.base_seed)).collect();
    match arguments.output {
        Output::Json => say(&(serde_json::to_string_pretty(&rows)? + "\n")),
        Output::Text => say(&text(&rows)),
    }
    Ok(ExitCode::SUCCESS)
}
