//! `bench corrupt`: how often checks detect one corrupted step of a trace, and whether any clean
//! trace leads to a wrong answer (`--adversarial`).

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
use prime_bench::judge::soundness::{
    ATTACKED, Attack, AttackRow, SoundnessRow, SoundnessTable, attack,
};
use prime_bench::tasks::{self, AnyTask, BASE_SEED, Kind, Kinds};

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
    /// Traces per task, each with one corruption; with `--adversarial`, attacks per task
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000)
    )]
    traces: u64,
    /// Base seed of the instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Search for clean traces that end in a wrong answer, instead of corrupting one step; exit
    /// code 1 if the sound kinds of a task let one through
    #[arg(long)]
    adversarial: bool,
    /// Kinds of constraints to attack [default: those that the task's page calls sound]
    #[arg(long, value_name = "KIND", value_delimiter = ',', requires = "adversarial")]
    kinds: Vec<Kind>,
    /// Write the table that results quote, with a fixed number of traces and base seed: every set
    /// of kinds of constraints; with `--adversarial`, the attacks on each task
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["tasks", "traces", "base_seed", "output", "kinds"]
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

/// Attacks of each task in the table.
const ATTACKS: u64 = 2_000;
/// Longer traces are not attacked.
const LINES_MAX: usize = 2_000;

/// Attacks all tasks for the table. An incomplete one is not written.
fn write_soundness(path: &Path) -> anyhow::Result<ExitCode> {
    let plan = Attack { kinds: ATTACKED, walks: ATTACKS, lines_max: LINES_MAX, seed: BASE_SEED };
    let (rows, finished) = measure_tasks(tasks::all().collect(), move |task| {
        SoundnessRow::new(task, &attack(task, &plan))
    })?;
    if rows.len() == tasks::all().count() {
        let table = SoundnessTable::new(BASE_SEED, rows);
        std::fs::write(path, table.to_json())
            .with_context(|| format!("--table {}", path.display()))?;
    }
    Ok(finished.exit_code())
}

fn attacks_text(rows: &[AttackRow]) -> String {
    let cells = |row: &AttackRow| {
        [
            row.task.to_owned(),
            row.walks.to_string(),
            row.ended.to_string(),
            row.wrong.to_string(),
            row.shortest.as_ref().map_or("-".to_owned(), |fooled| fooled.lines.len().to_string()),
        ]
    };
    let sum = |of: fn(&AttackRow) -> u64| rows.iter().map(of).sum::<u64>();
    let fooled = rows.iter().filter(|row| row.wrong > 0).count();

    format!(
        "{}\n{} attacks: {} clean traces left the algorithm's path and ended, {} of them in a \
         wrong answer, in {fooled} of {} tasks\n",
        Table::new(
            ["task", "attacks", "clean ends", "wrong answers", "shortest"],
            rows.iter().map(cells)
        ),
        sum(|row| row.walks),
        sum(|row| row.ended),
        sum(|row| row.wrong),
        rows.len(),
    )
}

/// Attacks the chosen tasks.
fn attacked(
    arguments: &CorruptArguments,
    chosen: Vec<&'static dyn AnyTask>,
) -> anyhow::Result<ExitCode> {
    let kinds: Option<Kinds> =
        (!arguments.kinds.is_empty()).then(|| arguments.kinds.iter().copied().collect());
    let (walks, seed) = (arguments.traces, arguments.base_seed);
    let (rows, finished) = measure_tasks(chosen, move |task| {
        let kinds = kinds.unwrap_or(task.spec().sound);
        attack(task, &Attack { kinds, walks, lines_max: LINES_MAX, seed })
    })?;

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
        Output::Text => print(attacks_text(&rows))?,
    }
    let is_fooled = kinds.is_none() && rows.iter().any(|row| row.wrong > 0);
    Ok(if is_fooled { ExitCode::FAILURE } else { finished.exit_code() })
}

pub fn corrupt(arguments: &CorruptArguments) -> anyhow::Result<ExitCode> {
    match &arguments.table {
        Some(path) if arguments.adversarial => return write_soundness(path),
        Some(path) => return write_table(path),
        None => {}
    }

    let named = find_all(&arguments.tasks)?;
    let chosen: Vec<&'static dyn AnyTask> =
        if named.is_empty() { tasks::all().collect() } else { named };

    if arguments.adversarial {
        return attacked(arguments, chosen);
    }

    let (traces, base_seed) = (arguments.traces, arguments.base_seed);
    let (rows, finished) = measure_tasks(chosen, move |task| measure(task, traces, base_seed))?;

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
        Output::Text => print(text(&rows))?,
    }
    Ok(finished.exit_code())
}
