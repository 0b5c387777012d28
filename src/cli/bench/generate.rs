//! `bench generate`: instances as lines of the contract, in a folder, a file or standard output.

use std::io::{BufWriter, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueHint};
use tokio::time::Instant;

use super::{Chosen, ensure_folder_name};
use crate::cli::interrupt::end_with;
use crate::cli::output::{count, note, stdout, written};
use crate::cli::progress::{bar, interrupted};
use prime_bench::dataset::line::Extras;
use prime_dataset::files::Whole;
use prime_dataset::generate::{Manifest, fill_folder, write_lines};

#[derive(Args)]
pub struct GenerateArguments {
    #[command(flatten)]
    chosen: Chosen,
    /// Add the reference trace to each line, as `actions`
    #[arg(long)]
    traces: bool,
    /// Add the state after every N actions, as `states`
    #[arg(long, value_name = "N")]
    states_every: Option<NonZeroU64>,
    /// Folder (one file per task; a rerun continues an interrupted one), file (a name that ends in
    /// .jsonl or .zst), or - for standard output
    #[arg(long, value_name = "DIR|FILE|-", value_hint = ValueHint::AnyPath)]
    out: PathBuf,
    /// Compress the files of a folder with zstd
    #[arg(long)]
    compress: bool,
}

/// True if the name is that of a file of lines.
fn is_file_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl" || extension == "zst")
}

/// What an interruption leaves.
fn what_is_left(out: &Path) -> String {
    if out.as_os_str() == "-" {
        String::new()
    } else if is_file_name(out) {
        format!("; {} was not written", out.display())
    } else {
        format!(
            "; {} has the tasks that are complete, and the same command continues",
            out.display()
        )
    }
}

fn summary(manifest: &Manifest, folder: &Path, seconds: f64) -> String {
    let records = manifest.files.values();
    let (lines, steps) =
        records.fold((0, 0), |(lines, steps), file| (lines + file.lines, steps + file.steps));
    format!(
        "{}: {}, {}, {}; {seconds:.1} s",
        folder.display(),
        count(manifest.files.len() as u64, "file"),
        count(lines, "instance"),
        count(steps, "reference step"),
    )
}

pub fn generate(arguments: &GenerateArguments) -> anyhow::Result<ExitCode> {
    let chosen = &arguments.chosen;
    let (tasks, selection, threads) = (chosen.tasks()?, chosen.selection(), chosen.threads());

    let extras = Extras {
        traces: arguments.traces,
        states_every: arguments.states_every.map(NonZeroU64::get),
    };

    let bar = bar(tasks.len() as u64 * selection.per_task(), "instance");
    let started = Instant::now();
    let out = &arguments.out;
    let (interrupted_bar, rest) = (bar.clone(), what_is_left(out));
    end_with(move || format!("{}{rest}", interrupted(&interrupted_bar, "instance")))?;

    if out.as_os_str() == "-" {
        let mut stdout = BufWriter::with_capacity(1 << 16, stdout());
        let lines = write_lines(&tasks, &selection, extras, threads, &mut stdout, || bar.inc(1));
        written(lines.and_then(|_| stdout.flush()))?;
    } else if is_file_name(out) {
        let named = || out.display().to_string();
        let mut file = Whole::create(out).with_context(named)?;
        let steps = write_lines(&tasks, &selection, extras, threads, &mut file, || bar.inc(1))
            .with_context(named)?;
        let content = file.finish().with_context(named)?;
        let lines = count(tasks.len() as u64 * selection.per_task(), "instance");
        let steps = count(steps, "reference step");
        note!("{}: {lines}, {steps}, sha256 {}", out.display(), content.sha256);
    } else {
        ensure_folder_name(
            "--out",
            out,
            ", of a file that ends in .jsonl or .zst, or - for standard output",
        )?;
        let finished = |lines| bar.inc(lines);
        let manifest =
            fill_folder(out, &tasks, &selection, extras, arguments.compress, threads, finished)?;
        bar.finish_and_clear();
        note!("{}", summary(&manifest, out, started.elapsed().as_secs_f64()));
    }

    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}
