//! `prime-agents bench`: the benchmark as a list, pages, files and prompts, the judge of outputs, and measurements of
//! the configured agents. One file a subcommand.

mod approaches;
mod check;
mod corrupt;
mod export;
mod generate;
mod list;
mod measure;
mod measured;
mod overhead;
mod prompt;
mod show;
mod speed;
mod strategies;
mod verifiers;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use prime_bench::dataset::Selection;
use prime_bench::judge::INDEX_LIMIT;
use prime_bench::tasks::{self, AnyTask, BASE_SEED, Category, Difficulty, INSTANCES};

#[derive(Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// List the tasks with sizes, constraints and the paper's figures.
    List(list::ListArguments),
    /// Show the page of a task: algorithm, actions, constraints, a worked example.
    Show(show::ShowArguments),
    /// Write instances, with reference traces if asked for, as JSON Lines.
    Generate(generate::GenerateArguments),
    /// Write a dataset with prompts, one split a task, as JSON Lines or Parquet.
    Export(export::ExportArguments),
    /// Judge submitted outputs in four stages.
    Check(check::CheckArguments),
    /// Print the prompt of an instance.
    Prompt(prompt::PromptArguments),
    /// Corrupt reference traces in one step, and count what checks with and without the algorithm find.
    Corrupt(corrupt::CorruptArguments),
    /// Measure how fast instances are drawn, references run and steps judged.
    Speed(speed::SpeedArguments),
    /// Solve instances twice: in a single pass without a verifier, and with PRIME as configured.
    Solve(measured::Measured),
    /// Ask the executor for single steps of reference traces, greedily, and count the right ones.
    Steps(measured::Measured),
    /// Solve instances with each strategy and each verifier.
    Strategies(strategies::StrategiesArguments),
    /// Let verifiers judge right and wrong steps, and count their mistakes.
    Verifiers(verifiers::VerifiersArguments),
    /// Measure what a turn of each kind of agent costs, without a model.
    Overhead(overhead::OverheadArguments),
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
        BenchCommand::Solve(measured) => measure::solve_instances(measured),
        BenchCommand::Steps(measured) => measure::ask_for_steps(measured),
        BenchCommand::Strategies(arguments) => strategies::strategies(arguments),
        BenchCommand::Verifiers(arguments) => verifiers::verifiers(arguments),
        BenchCommand::Overhead(arguments) => overhead::overhead(arguments),
    }
}

/// Which instances of which tasks a file is made of.
#[derive(Args)]
struct Chosen {
    /// A task; may be given several times.
    #[arg(long = "task", value_name = "TASK")]
    tasks: Vec<String>,
    /// All tasks of a category; may be given several times.
    #[arg(long = "category", value_name = "CATEGORY")]
    categories: Vec<Category>,
    /// All 86 tasks.
    #[arg(long)]
    all: bool,
    /// A level; all three by default.
    #[arg(long = "difficulty", value_name = "LEVEL")]
    difficulties: Vec<Difficulty>,
    /// Instances of each task and level.
    #[arg(long, default_value_t = INSTANCES, value_parser = clap::value_parser!(u32).range(1..=i64::from(INDEX_LIMIT)))]
    instances: u32,
    /// Base seed; 42 is the benchmark, any other makes a fresh one.
    #[arg(long, default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Threads to work with; all cores by default.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

impl Chosen {
    fn tasks(&self) -> anyhow::Result<Vec<&'static dyn AnyTask>> {
        let nothing = self.tasks.is_empty() && self.categories.is_empty();
        anyhow::ensure!(self.all == nothing, "name tasks with --task or --category, or take them all with --all");
        if self.all {
            return Ok(tasks::all().collect());
        }
        let mut chosen: Vec<&'static dyn AnyTask> = Vec::new();
        let named = self.tasks.iter().map(|slug| tasks::find(slug)).collect::<Result<Vec<_>, _>>()?;
        let of_categories = tasks::all().filter(|task| self.categories.contains(&task.spec().category));
        for task in named.into_iter().chain(of_categories) {
            if chosen.iter().all(|other| other.spec().slug != task.spec().slug) {
                chosen.push(task);
            }
        }
        Ok(chosen)
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

fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// A bar with rate and time left on standard error; none where that is no terminal.
fn progress(total: u64, what: &str) -> ProgressBar {
    let style = "{bar:30} {pos}/{len} {msg}, {per_sec}, {eta} left";
    let bar = ProgressBar::new(total).with_message(what.to_owned());
    bar.set_style(ProgressStyle::with_template(style).expect("invariant: the template is valid"));
    bar
}

pub(super) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table.add_rows(rows);
    table
}

/// Writes to standard output; a reader that has gone away is no error.
pub(super) fn say(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}
