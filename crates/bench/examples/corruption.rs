//! Prints what a task's constraints miss:
//! `cargo run --release -p prime-bench --example corruption -- [TASK…]` prints the share of
//! corrupted steps that they detect without running the algorithm; for named tasks also those that
//! they miss. With `--table` it prints the table of `judge::detection` instead.

use prime_bench::judge::corruption::corrupt;
use prime_bench::judge::detection::{DetectionTable, TRACES as TABLE_TRACES, measure};
use prime_bench::tasks;

/// Corrupted traces of each task.
const TRACES: u64 = 300;
/// Missed corruptions that are printed per named task.
const SHOWN: usize = 12;

fn main() -> Result<(), tasks::UnknownTask> {
    let (options, named): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument == "--table");
    let chosen: Vec<_> = if named.is_empty() {
        tasks::all().collect()
    } else {
        named.iter().map(|slug| tasks::find(slug)).collect::<Result<_, _>>()?
    };

    if !options.is_empty() {
        let rows =
            chosen.into_iter().map(|task| measure(task, TABLE_TRACES, tasks::BASE_SEED)).collect();
        print!("{}", DetectionTable::new(tasks::BASE_SEED, TABLE_TRACES, rows).to_json());
        return Ok(());
    }

    let mut rates = Vec::new();
    for task in chosen {
        let row = corrupt(task, TRACES, tasks::BASE_SEED);
        rates.push(100.0 * row.detection_rate());
        println!(
            "{:28} {:5.1} % of {} (harmless: {})",
            row.task,
            100.0 * row.detection_rate(),
            row.meaningful(),
            row.harmless
        );

        for missed in row.missed.iter().take(if named.is_empty() { 0 } else { SHOWN }) {
            let reference = missed.reference.as_deref().unwrap_or("the end");
            println!(
                "  {}/{:03} {:?} at {}: {:?} instead of {reference:?}",
                missed.difficulty, missed.index, missed.corruption, missed.at, missed.lines
            );
        }
    }

    println!(
        "mean {:.1} %, lowest {:.1} %",
        rates.iter().sum::<f64>() / rates.len() as f64,
        rates.iter().fold(100.0_f64, |low, rate| low.min(*rate))
    );
    Ok(())
}
