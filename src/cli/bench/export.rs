//! `bench export`: a dataset with prompts.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum, ValueHint};

use super::{Chosen, ensure_folder_name, note_of_benchmark};
use crate::cli::interrupt::end_with;
use crate::cli::output::{count, note};
use crate::cli::progress::{bar, interrupted};
use crate::cli::values::style_of_one_reply;
use prime_bench::prompts::{Components, Style, whole};
use prime_bench::tasks::{BASE_SEED, Problem};
use prime_dataset::export::{ExportPlan, Format, export as write_export};
use prime_dataset::labelled::export_labelled_steps;
use prime_dataset::place::prepare;

#[derive(Clone, Copy, ValueEnum)]
enum FileFormat {
    Jsonl,
    Parquet,
}

#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    chosen: Chosen,
    /// File format
    #[arg(long, value_enum)]
    format: FileFormat,
    /// Style of the prompt column: baseline, structured, sorting, state-machine or mathematical;
    /// tasks that a style does not suit get the structured prompt
    #[arg(
        long,
        value_parser = style_of_one_reply,
        default_value_t = Style::Structured(Components::ALL)
    )]
    style: Style,
    /// Export labelled steps instead of instances: right and wrong proposals at a state of each
    /// instance's reference trace, to measure or train verifiers
    #[arg(long, conflicts_with = "style")]
    labelled_steps: bool,
    /// With a base seed other than 42: keep instances whose inputs the benchmark has too. Without
    /// this they are left out
    #[arg(long)]
    benchmark_inputs: bool,
    /// Folder to write
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Replace the data set in the folder: remove its card and its files below `data` first
    #[arg(long)]
    force: bool,
}

pub fn export(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    // By default, a dataset is the whole benchmark.
    let (tasks, selection) = (arguments.chosen.tasks.or_all()?, arguments.chosen.selection());
    let format = match arguments.format {
        FileFormat::Jsonl => Format::JsonLines,
        FileFormat::Parquet => Format::Parquet,
    };
    ensure_folder_name("--out", &arguments.out, "")?;
    prepare(&arguments.out, arguments.force).context("--out")?;

    let style = arguments.style;
    let prompt = |problem: &dyn Problem| {
        let style = if style.suits(problem.spec().category) {
            style
        } else {
            Style::Structured(Components::ALL)
        };
        whole(problem, style)
    };

    // Labelled steps are made a level at a time.
    let (total, unit) = if arguments.labelled_steps {
        (tasks.len() * selection.difficulties.len(), "level")
    } else {
        (tasks.len() * usize::try_from(selection.per_task()).unwrap_or(usize::MAX), "instance")
    };
    let bar = bar(total as u64, unit);
    let (interrupted_bar, folder) = (bar.clone(), arguments.out.display().to_string());
    end_with(move || {
        format!(
            "{}; {folder} has no card yet: run the command again with --force",
            interrupted(&interrupted_bar, unit)
        )
    })?;

    let (out, threads) = (&arguments.out, arguments.chosen.threads());
    // Another base seed than the benchmark's is for training.
    let fresh = selection.base_seed != BASE_SEED && !arguments.benchmark_inputs;
    let plan = ExportPlan { format, threads, fresh };
    let finished = || bar.inc(1);
    let summary = if arguments.labelled_steps {
        export_labelled_steps(out, &tasks, &selection, plan, &finished)?
    } else {
        write_export(out, &tasks, &selection, plan, &prompt, &finished)?
    };
    bar.finish_and_clear();

    let (tasks, rows) = (count(tasks.len() as u64, "task"), count(summary.rows, "row"));
    note!("{}: {tasks}, {rows}", out.display());
    note_of_benchmark(summary.of_benchmark, &summary.exhausted);
    ensure!(summary.rows > 0, "--out {}: nothing is left to export", out.display());
    Ok(ExitCode::SUCCESS)
}
