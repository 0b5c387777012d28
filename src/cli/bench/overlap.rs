//! `bench overlap`: which instances have inputs that training draws too.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueHint};

use super::{ChosenTasks, instances, measure_tasks};
use crate::cli::output::{Output, note, print};
use crate::cli::table::Table;
use crate::cli::values::difficulty;
use crate::evaluation::overlap::{OverlapRow, Plan, overlap as measure};
use prime_bench::interval::Proportion;
use prime_bench::tasks::{BASE_SEED, Difficulty, INSTANCES};
use prime_study::records::{Record, read_all};

#[derive(Args)]
pub struct OverlapArguments {
    #[command(flatten)]
    chosen: ChosenTasks,
    /// Difficulty; repeatable [default: all three]
    #[arg(long = "difficulty", value_name = "LEVEL", value_parser = difficulty())]
    difficulties: Vec<Difficulty>,
    /// Evaluated instances per task and difficulty
    #[arg(
        long,
        value_name = "N",
        default_value_t = INSTANCES,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000)
    )]
    instances: u32,
    /// Base seed of the evaluated instances; 42 is the benchmark
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// First of the thousand base seeds that training draws from, as in a recipe
    #[arg(long, value_name = "SEED", default_value_t = 1_000_000)]
    training_base_seed: u64,
    /// Instances per task and difficulty that training draws
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000)
    )]
    draws: u32,
    /// Records of `study run`, for the accuracy on instances that training met and on the others;
    /// repeatable
    #[arg(long = "records", value_name = "FILE", value_hint = ValueHint::FilePath)]
    records: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

fn share(share: &Proportion) -> String {
    if share.of == 0 { "-".to_owned() } else { format!("{}: {}", share.of, share.text()) }
}

fn table(rows: &[OverlapRow]) -> Table {
    let header = [
        "task",
        "level",
        "instances",
        "drawn inputs",
        "met in training",
        "system",
        "n: accuracy % where met (95 %)",
        "n: accuracy % of the rest (95 %)",
    ];

    let cells = |row: &OverlapRow, system: [String; 3]| {
        let [name, met, rest] = system;
        [
            row.task.to_owned(),
            row.difficulty.to_string(),
            instances(row.instances, row.inputs),
            row.drawn.to_string(),
            row.met.to_string(),
            name,
            met,
            rest,
        ]
    };
    let lines = rows.iter().flat_map(|row| {
        let mut lines: Vec<_> = row
            .systems
            .iter()
            .map(|it| cells(row, [it.system.clone(), share(&it.met), share(&it.rest)]))
            .collect();
        if lines.is_empty() {
            lines.push(cells(row, ["-", "-", "-"].map(str::to_owned)));
        }
        lines
    });
    Table::new(header, lines)
}

/// Refuses records of other instances: each of their accuracies would be missing from the table.
fn check_base_seed(records: &[Record], asked: u64) -> anyhow::Result<()> {
    let seeds: BTreeSet<u64> = records.iter().map(|record| record.base_seed).collect();
    if seeds.is_empty() || seeds.contains(&asked) {
        return Ok(());
    }

    let known: Vec<String> = seeds.iter().map(u64::to_string).collect();
    anyhow::bail!(
        "--records: no run is of an instance with the base seed {asked}; theirs is {}: give it with --base-seed, or \
         set `base_seeds` under [ask] in the study",
        known.join(", ")
    )
}

pub fn overlap(arguments: &OverlapArguments) -> anyhow::Result<ExitCode> {
    let mut difficulties = arguments.difficulties.clone();
    if difficulties.is_empty() {
        difficulties = Difficulty::ALL.to_vec();
    }
    difficulties.sort_unstable();
    difficulties.dedup();

    let records = Arc::new(read_all(&arguments.records)?.records);
    check_base_seed(&records, arguments.base_seed)?;
    let plan = Plan {
        difficulties,
        instances: arguments.instances,
        base_seed: arguments.base_seed,
        training_base_seed: arguments.training_base_seed,
        draws: arguments.draws,
    };

    let tasks = arguments.chosen.or_all()?;
    let (rows, finished) = measure_tasks(tasks, move |task| measure(task, &plan, &records))?;
    let rows: Vec<OverlapRow> = rows.into_iter().flatten().collect();

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&rows)? + "\n")?,
        Output::Text => {
            let met: Vec<OverlapRow> = rows.iter().filter(|row| row.met > 0).cloned().collect();
            if !met.is_empty() {
                print(table(&met))?;
            }
            let without = rows.len() - met.len();
            note!("{without} of {} levels of tasks have no input that training drew", rows.len());
        }
    }
    Ok(finished.exit_code())
}

#[cfg(test)]
mod tests {
    use prime_study::records::{Key, Provenance};

    use super::*;

    #[test]
    fn records_of_other_instances_are_refused_with_their_base_seed() {
        let key = Key {
            system: "model".to_owned(),
            task: "tower-of-hanoi".to_owned(),
            difficulty: "easy".to_owned(),
            index: 0,
            base_seed: 7,
            repeat: 0,
        };
        let record = Record::not_measured(
            key,
            prime_bench::tasks::find("tower-of-hanoi").unwrap().spec(),
            &Provenance::default(),
        );

        assert!(check_base_seed(&[], 42).is_ok());
        assert!(check_base_seed(std::slice::from_ref(&record), 7).is_ok());

        let error = check_base_seed(&[record], 42).unwrap_err().to_string();
        assert!(error.contains("base seed 42; theirs is 7: give it with --base-seed"), "{error}");
    }
}
