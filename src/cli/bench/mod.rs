//! `prime-agents bench`: the tasks of the benchmark, its files and prompts, the judge of outputs,
//! and evaluations of the configured agents. One file for each subcommand.

mod approaches;
mod check;
mod corrupt;
mod export;
mod generate;
mod list;
mod measurement;
mod overhead;
mod overlap;
mod prompt;
mod rollouts;
mod show;
mod solve;
mod speed;
mod steps;
mod strategies;
mod verifier;
mod verifier_text;

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anyhow::ensure;
use clap::{Args, Subcommand};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use super::output::{count, note};
use super::progress::{Finished, Session};
use super::values::{TaskParser, category, difficulty};
use prime_bench::dataset::Selection;
use prime_bench::judge::INDEX_LIMIT;
use prime_bench::tasks::{self, AnyTask, BASE_SEED, Category, Difficulty, INSTANCES};

pub use measurement::{CONCURRENT, turns_of, with_engines};

#[derive(Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// List the tasks
    List(list::ListArguments),
    /// Show a task: algorithm, actions, constraints, a worked example
    Show(show::ShowArguments),
    /// Generate instances as JSON Lines, optionally with reference traces
    Generate(generate::GenerateArguments),
    /// Export a dataset with prompts, one split per task, as JSON Lines or Parquet
    Export(export::ExportArguments),
    /// Judge submitted outputs in four stages
    Check(check::CheckArguments),
    /// Print the prompt of an instance
    Prompt(prompt::PromptArguments),
    /// Corrupt one step of reference traces and measure how often checks detect it
    Corrupt(corrupt::CorruptArguments),
    /// Measure the speed of the tasks: generation, references, checks
    Speed(speed::SpeedArguments),
    /// Compare PRIME as configured with a single pass without a verifier
    Solve(solve::SolveArguments),
    /// Measure the single-step accuracy of the executor
    Steps(steps::StepsArguments),
    /// Measure step labels by Monte Carlo rollouts of the executor against known labels
    Rollouts(rollouts::RolloutsArguments),
    /// Compare strategies and verifiers on whole runs
    Strategies(strategies::StrategiesArguments),
    /// Measure how often verifiers are wrong, on labelled steps and runs; write and show their cards
    Verifier(verifier::VerifierArguments),
    /// Measure the cost of an agent's turn without a model
    Overhead(overhead::OverheadArguments),
    /// Show which instances have inputs that training also draws
    Overlap(overlap::OverlapArguments),
}

pub fn bench(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        BenchCommand::List(arguments) => list::list(arguments),
        BenchCommand::Show(arguments) => show::show(arguments),
        BenchCommand::Generate(arguments) => generate::generate(arguments),
        BenchCommand::Export(arguments) => export::export(arguments),
        BenchCommand::Check(arguments) => check::check(arguments),
        BenchCommand::Prompt(arguments) => prompt::prompt(arguments),
        BenchCommand::Corrupt(arguments) => corrupt::corrupt(arguments),
        BenchCommand::Speed(arguments) => speed::speed(arguments),
        BenchCommand::Solve(arguments) => solve::solve(arguments),
        BenchCommand::Steps(arguments) => steps::steps(arguments),
        BenchCommand::Rollouts(arguments) => rollouts::rollouts(arguments),
        BenchCommand::Strategies(arguments) => strategies::strategies(arguments),
        BenchCommand::Verifier(arguments) => verifier::verifier(arguments),
        BenchCommand::Overhead(arguments) => overhead::overhead(arguments),
        BenchCommand::Overlap(arguments) => overlap::overlap(arguments),
    }
}

/// The tasks of a file or a measurement.
#[derive(Args)]
pub struct ChosenTasks {
    /// Task; repeatable
    #[arg(
        long = "task",
        value_name = "TASK",
        value_parser = TaskParser,
        hide_possible_values = true
    )]
    tasks: Vec<String>,
    /// Category, for all of its tasks; repeatable
    #[arg(long = "category", value_name = "CATEGORY", value_parser = category())]
    categories: Vec<Category>,
    /// All tasks
    #[arg(long)]
    all: bool,
}

/// The instances of a file or a measurement.
#[derive(Args)]
struct Chosen {
    #[command(flatten)]
    tasks: ChosenTasks,
    /// Difficulty; repeatable [default: all three]
    #[arg(long = "difficulty", value_name = "LEVEL", value_parser = difficulty())]
    difficulties: Vec<Difficulty>,
    /// Instances per task and difficulty
    #[arg(
        long,
        value_name = "N",
        default_value_t = INSTANCES,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(INDEX_LIMIT))
    )]
    instances: u32,
    /// Base seed; 42 gives the benchmark, others give fresh instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl ChosenTasks {
    /// These tasks; all of them where none is chosen.
    ///
    /// # Errors
    /// When a task is unknown.
    pub fn or_all(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        if self.tasks.is_empty() && self.categories.is_empty() {
            Ok(tasks::all().collect())
        } else {
            self.tasks()
        }
    }

    fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        let nothing = self.tasks.is_empty() && self.categories.is_empty();
        ensure!(
            self.all == nothing,
            "choose tasks with --task or --category, or all of them with --all"
        );

        if self.all {
            return Ok(tasks::all().collect());
        }

        ensure!(
            !self.tasks.iter().any(|task| task == "all"),
            "--task all: there is no such task; for all tasks, use --all"
        );

        let mut chosen: Vec<&'static dyn AnyTask> = Vec::new();
        let of_categories =
            tasks::all().filter(|task| self.categories.contains(&task.spec().category));
        for task in find_all(&self.tasks)?.into_iter().chain(of_categories) {
            if chosen.iter().all(|other| other.spec().slug != task.spec().slug) {
                chosen.push(task);
            }
        }

        Ok(chosen)
    }
}

impl Chosen {
    fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        self.tasks.tasks()
    }

    fn selection(&self) -> Selection {
        let mut difficulties = self.difficulties.clone();
        if difficulties.is_empty() {
            difficulties = Difficulty::ALL.to_vec();
        }

        difficulties.sort_unstable();
        difficulties.dedup();
        Selection { difficulties, instances: self.instances, base_seed: self.base_seed }
    }

    fn threads(&self) -> usize {
        threads(self.threads)
    }
}

fn find_all(slugs: &[String]) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
    slugs.iter().map(|slug| Ok(tasks::find(slug)?)).collect()
}

pub fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Refuses a folder whose name is that of a file: a misspelt name must not become a folder.
pub fn ensure_folder_name(option: &str, path: &Path, files: &str) -> anyhow::Result<()> {
    const OF_FILES: [&str; 8] = ["csv", "gz", "json", "ndjson", "parquet", "txt", "xz", "zip"];
    let is_file = (path.exists() && !path.is_dir())
        || path
            .extension()
            .is_some_and(|extension| OF_FILES.iter().any(|known| extension == *known));
    ensure!(!is_file, "{option} {}: give the name of a folder{files}", path.display());
    Ok(())
}

/// A number of instances, with the number of different inputs where some repeat, which the interval
/// beside it is based on.
pub fn instances(instances: u64, inputs: u64) -> String {
    if inputs == instances {
        instances.to_string()
    } else {
        format!("{instances} ({})", count(inputs, "input"))
    }
}

/// Says what a data set lacks because the benchmark has it.
pub fn note_of_benchmark(instances: u64, exhausted: &[impl AsRef<str>]) {
    if instances > 0 {
        note!(
            "{} left out, whose inputs the benchmark has; --benchmark-inputs keeps them",
            count(instances, "instance")
        );
    }
    if !exhausted.is_empty() {
        let names: Vec<&str> = exhausted.iter().map(AsRef::as_ref).collect();
        note!("nothing is left of {}", names.join(", "));
    }
}

/// A row for each task, until Ctrl-C; measured on a thread of its own.
fn measure_tasks<Row: Send + 'static>(
    tasks: Vec<&'static dyn AnyTask>,
    measure: impl Fn(&'static dyn AnyTask) -> Row + Clone + Send + 'static,
) -> anyhow::Result<(Vec<Row>, Finished)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;

    let measured = runtime.block_on(async {
        let mut session = Session::start(tasks.len(), "task")?;
        let mut rows = Vec::new();
        for task in tasks {
            let measure = measure.clone();
            let Some(row) =
                session.next(async { Ok(spawn_blocking(move || measure(task)).await?) }).await?
            else {
                break;
            };
            rows.push(row);
        }
        anyhow::Ok((rows, session.finish()))
    });

    // After Ctrl-C nobody waits for the task under way.
    runtime.shutdown_background();
    measured
}
