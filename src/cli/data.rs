//! `prime-agents data`: data to train models elsewhere, in the chat format, as Parquet.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::bench::{ChosenTasks, ensure_folder_name, note_of_benchmark, threads};
use super::interrupt::end_with;
use super::output::{count, note};
use super::progress::{bar, interrupted};
use super::values::{difficulty, style_of_one_reply};
use prime_bench::dataset::Selection;
use prime_bench::judge::INDEX_LIMIT;
use prime_bench::prompts::{Components, Style};
use prime_bench::tasks::{AnyTask, BASE_SEED, Difficulty};
use prime_dataset::place::prepare;
use prime_dataset::training::{Ask, Kind, Options, Preference, Recorded, read_trace, write};

/// Default base seed of the instances: not the benchmark's, which nothing should be trained on.
const TRAINING_SEED: u64 = 1_000;

#[derive(Args)]
pub struct DataArguments {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Reference steps or whole reference traces, for supervised fine-tuning
    Sft(SftArguments),
    /// Preference pairs of single steps, from references and from traces of runs
    Dpo(DpoArguments),
    /// Prompts with the columns that reward functions need
    Grpo(GrpoArguments),
}

/// The instances, and where the data goes.
#[derive(Args)]
struct Source {
    #[command(flatten)]
    chosen: ChosenTasks,
    /// Difficulty; repeatable [default: all three]
    #[arg(long = "difficulty", value_name = "LEVEL", value_parser = difficulty())]
    difficulties: Vec<Difficulty>,
    /// Instances per task and difficulty
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(INDEX_LIMIT))
    )]
    instances: u32,
    /// Base seed of the instances; 42, the benchmark's, is refused
    #[arg(long, value_name = "SEED", default_value_t = TRAINING_SEED)]
    base_seed: u64,
    /// Keep instances whose inputs the benchmark has too; some tasks (tower-of-hanoi) have no
    /// others. Without this they are left out, whatever their seeds
    #[arg(long)]
    benchmark_inputs: bool,
    /// Folder to write
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Replace the data set in the folder: remove its card and its files below `data` first
    #[arg(long)]
    force: bool,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

#[derive(Args)]
struct SftArguments {
    #[command(flatten)]
    source: Source,
    /// Style of the prompts: compact, which asks for one step, or, for whole traces, baseline,
    /// structured, sorting, state-machine or mathematical. Repeatable: each instance gets one of
    /// them
    #[arg(long = "style", value_name = "STYLE", value_parser = ask, default_value = "compact")]
    styles: Vec<Ask>,
    /// With the style compact: maximum number of steps of an instance, spread evenly over its trace
    /// from the first to the last
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    steps: u64,
    /// For whole traces: leave out instances whose trace has more lines
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    lines_max: u64,
}

#[derive(Args)]
struct DpoArguments {
    #[command(flatten)]
    source: Source,
    /// Most steps of an instance, spread evenly over its trace
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    steps: u64,
    /// Trace of a run, as `runs trace` writes it: what its verifier preferred becomes pairs, in
    /// data/runs.parquet; repeatable
    #[arg(long = "trace", value_name = "FILE", value_hint = ValueHint::FilePath)]
    traces: Vec<PathBuf>,
    /// What makes a line of a trace better than another: verdict (the verifier passed it and found
    /// fault with the other) or rlaif (a higher score: −V plus CONSISTENCY times the line's share
    /// of the proposals in its state)
    #[arg(long, value_enum, requires = "traces", default_value_t = By::Verdict)]
    prefer: By,
    /// With rlaif: least difference of two scores that makes a pair [default: 0.1]
    #[arg(
        long,
        value_name = "DIFFERENCE",
        value_parser = not_negative,
        allow_negative_numbers = true
    )]
    margin: Option<f64>,
    /// With rlaif: weight of the share of the proposals [default: 0.2]
    #[arg(long, value_name = "WEIGHT", value_parser = not_negative, allow_negative_numbers = true)]
    consistency: Option<f64>,
    /// Only pairs from traces of runs
    #[arg(long, requires = "traces", conflicts_with_all = ["tasks", "categories", "all"])]
    only_traces: bool,
}

/// What makes a line of a trace better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Verdict,
    Rlaif,
}

/// Default of `--margin`.
const MARGIN: f64 = 0.1;
/// Default of `--consistency`: λ of the trainer's own RLAIF.
const CONSISTENCY: f64 = 0.2;

impl DpoArguments {
    fn preference(&self) -> anyhow::Result<Preference> {
        match self.prefer {
            By::Rlaif => Ok(Preference::Score {
                margin: self.margin.unwrap_or(MARGIN),
                consistency: self.consistency.unwrap_or(CONSISTENCY),
            }),
            By::Verdict => {
                for (option, given) in
                    [("--margin", self.margin), ("--consistency", self.consistency)]
                {
                    ensure!(given.is_none(), "{option}: goes with --prefer rlaif");
                }
                Ok(Preference::Verdict)
            }
        }
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "give a number that is not negative, such as 0.2".to_owned())
}

#[derive(Args)]
struct GrpoArguments {
    #[command(flatten)]
    source: Source,
    /// Style of the prompts: baseline, structured, sorting, state-machine or mathematical, for
    /// reward functions; turns, for environments. Repeatable: each instance gets one
    #[arg(
        long = "style",
        value_name = "STYLE",
        default_values_t = [Style::Structured(Components::ALL)]
    )]
    styles: Vec<Style>,
}

fn ask(text: &str) -> Result<Ask, String> {
    match text {
        "compact" => Ok(Ask::Step),
        style => {
            style_of_one_reply(style).map(Ask::Whole).map_err(|error| format!("{error}, compact"))
        }
    }
}

impl Source {
    fn selection(&self) -> anyhow::Result<Selection> {
        ensure!(
            self.base_seed != BASE_SEED,
            "--base-seed {BASE_SEED}: these are the instances of the benchmark, on which nothing \
             should be trained: give another"
        );

        let mut difficulties = self.difficulties.clone();
        if difficulties.is_empty() {
            difficulties = Difficulty::ALL.to_vec();
        }
        difficulties.sort_unstable();
        difficulties.dedup();

        Ok(Selection { difficulties, instances: self.instances, base_seed: self.base_seed })
    }
}

fn recorded(path: &Path, preference: Preference) -> anyhow::Result<Recorded> {
    let named = || format!("--trace {}", path.display());
    read_trace(&std::fs::read_to_string(path).with_context(named)?, preference).with_context(named)
}

fn make(
    source: &Source,
    tasks: &[&'static dyn AnyTask],
    options: &Options,
    recorded: Vec<Recorded>,
) -> anyhow::Result<ExitCode> {
    let (out, selection) = (&source.out, source.selection()?);
    ensure_folder_name("--out", out, "")?;
    prepare(out, source.force).context("--out")?;

    let bar = bar(tasks.len() as u64 * selection.per_task(), "instance");
    let (interrupted_bar, folder) = (bar.clone(), out.display().to_string());
    end_with(move || {
        format!(
            "{}; {folder} has no card yet: run the command again with --force",
            interrupted(&interrupted_bar, "instance")
        )
    })?;

    let summary =
        write(out, tasks, &selection, options, recorded, threads(source.threads), &|| bar.inc(1))?;
    bar.finish_and_clear();
    note!("{}: {}, {}", out.display(), count(summary.files, "file"), count(summary.rows, "row"));

    note_of_benchmark(summary.of_benchmark, &summary.exhausted);
    if summary.left_out > 0 {
        note!(
            "{} without a row: their traces are too long, or no step of theirs fits",
            count(summary.left_out, "instance")
        );
    }

    ensure!(summary.rows > 0, "--out {}: there is nothing to train on in it", out.display());
    Ok(ExitCode::SUCCESS)
}

pub fn data(arguments: &DataArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        DataCommand::Sft(SftArguments { source, styles, steps, lines_max }) => {
            let options = Options {
                kind: Kind::Sft,
                asks: styles.clone(),
                steps_max: *steps,
                lines_max: *lines_max,
                benchmark_inputs: source.benchmark_inputs,
            };
            make(source, &source.chosen.or_all()?, &options, Vec::new())
        }
        DataCommand::Dpo(dpo) => {
            let (DpoArguments { source, steps, traces, only_traces, .. }, preference) =
                (dpo, dpo.preference()?);
            let options = Options {
                kind: Kind::Dpo,
                asks: vec![Ask::Step],
                steps_max: *steps,
                lines_max: u64::MAX,
                benchmark_inputs: source.benchmark_inputs,
            };
            let recorded = traces
                .iter()
                .map(|path| recorded(path, preference))
                .collect::<anyhow::Result<_>>()?;
            let chosen = if *only_traces { Vec::new() } else { source.chosen.or_all()? };
            make(source, &chosen, &options, recorded)
        }
        DataCommand::Grpo(GrpoArguments { source, styles }) => {
            let options = Options {
                kind: Kind::Grpo,
                asks: styles.iter().copied().map(Ask::Whole).collect(),
                steps_max: 1,
                lines_max: u64::MAX,
                benchmark_inputs: source.benchmark_inputs,
            };
            make(source, &source.chosen.or_all()?, &options, Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_named_as_prompts_are() {
        assert_eq!(ask("compact"), Ok(Ask::Step));
        assert_eq!(ask("sorting"), Ok(Ask::Whole(Style::Sorting)));
        assert!(ask("terse").unwrap_err().contains("mathematical, compact"));
        assert!(
            ask("turns").unwrap_err().contains("mathematical, compact"),
            "a turn is not a whole trace"
        );
    }
}
