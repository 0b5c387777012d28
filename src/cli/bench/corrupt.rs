//! `bench corrupt`: how often checks detect one corrupted step of a trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::{find_all, measure_tasks};
use crate::cli::output::{Output, print};
use crate::cli::table::Table;
use crate::cli::values::TaskParser;
use prime_bench::judge::corruption::{CorruptionRow, corrupt as measure};
use prime_bench::judge::detection::{self, DetectionTable, TRACES};
use prime_bench::tasks::{self, AnyTask, BASE_SEED};

#[derive(Args)]
pub struct CorruptArguments {
    /// Task; repeatable [default: all]
    #[arg(
        long = "task",
        value_name = "TASK",
        value_parser = TaskParser,
        hide_possible_values = true
    )]
    tasks: Vec<String>,
    /// Traces per task, each with one corruption
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=100_000)
    )]
    traces: u64,
    /// Base seed of the instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Write the table that results quote: every set of kinds of constraints, with a fixed number
    /// of traces and base seed
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["tasks", "traces", "base_seed", "output"]
    )]
    table: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn text(rows: &[CorruptionRow]) -> String {
    let percent = |found: u64, of: u64| format!("{:.1}", 100.0 * found as f64 / of.max(1) as f64);
    let cells = |row: &CorruptionRow| {
        [
            row.task.to_owned(),
            row.corrupted.to_string(),
            percent(row.found_at_step, row.corrupted),
            row.harmless.to_string(),
            percent(row.found_by_invariants, row.meaningful()),
        ]
    };

    let sum = |of: fn(&CorruptionRow) -> u64| rows.iter().map(of).sum::<u64>();
    let corrupted = sum(|row| row.corrupted);

    format!(
        "{}\n{corrupted} corrupted traces: {} % detected at the step by all kinds of constraints, \
         {} % of those that have an effect by format, invariant and terminal constraints\n",
        Table::new(
            ["task", "corrupted", "all kinds %", "harmless", "no transition %"],
            rows.iter().map(cells)
        ),
        percent(sum(|row| row.found_at_step), corrupted),
        percent(sum(|row| row.found_by_invariants), sum(CorruptionRow::meaningful)),
    )
}

/// Measures all tasks for the table. An incomplete one is not written.
fn write_table(path: &Path) -> anyhow::Result<ExitCode> {
    let (rows, finished) =
        measure_tasks(tasks::all().collect(), |task| detection::measure(task, TRACES, BASE_SEED))?;
    if rows.len() == tasks::all().count() {
        let table = DetectionTable::new(BASE_SEED, TRACES, rows);
        std::fs::write(path, table.to_json())
            .with_context(|| format!("--table {}", path.display()))?;
    }
    Ok(finished.exit_code())
}

pub fn corrupt(arguments: &CorruptArguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.table {
        return write_table(path);
    }
    let named = find_all(&arguments.tasks)?;
    let chosen: Vec<&'static dyn AnyTask> =
        if named.is_empty() { tasks::all().collect() } else { named };

    let (traces, base_seed) = (arguments.traces, arguments.base_seed);
    let (rows, finished) = measure_tasks(chosen, move |task| measure(task, traces, base_seed))?;

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
        Output::Text => print(text(&rows))?,
    }
    Ok(finished.exit_code())
}
