//! `bench generate`: contract lines, into a folder, one file, or standard output.

use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;

use super::{Chosen, progress};
use prime_bench::dataset::line::Extras;
use prime_dataset::files::Whole;
use prime_dataset::generate::{Manifest, fill_folder, write_lines};

#[derive(Args)]
pub struct GenerateArguments {
    #[command(flatten)]
    chosen: Chosen,
    /// Add the reference trace to each line: `actions`.
    #[arg(long)]
    traces: bool,
    /// Add the state after every N actions: `states`.
    #[arg(long, value_name = "N")]
    states_every: Option<NonZeroU64>,
    /// A folder (one file a task; a rerun goes on where an earlier one stopped), one file (a name that ends in .jsonl,
    /// .jsonl.zst or .zst), or - for standard output.
    #[arg(long, value_name = "DIR|FILE|-")]
    out: PathBuf,
    /// Compress the files of a folder with zstd: <task>.jsonl.zst.
    #[arg(long)]
    compress: bool,
}

/// Whether the name is that of one file.
fn is_file_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl" || extension == "zst")
}

fn summary(manifest: &Manifest, folder: &Path, seconds: f64) -> String {
    let records = manifest.files.values();
    let (lines, steps) = records.fold((0, 0), |(lines, steps), file| (lines + file.lines, steps + file.steps));
    format!(
        "{}: {} files, {lines} instances, {steps} reference steps; {seconds:.1} s\n",
        folder.display(),
        manifest.files.len(),
    )
}

pub fn generate(arguments: &GenerateArguments) -> anyhow::Result<ExitCode> {
    let chosen = &arguments.chosen;
    let (tasks, selection, threads) = (chosen.tasks()?, chosen.selection(), chosen.threads());
    let extras = Extras { traces: arguments.traces, states_every: arguments.states_every.map(NonZeroU64::get) };
    let bar = progress(tasks.len() as u64 * selection.per_task(), "instances");
    let started = Instant::now();
    let out = &arguments.out;
    if out.as_os_str() == "-" {
        let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = write_lines(&tasks, &selection, extras, threads, &mut stdout, || bar.inc(1));
        match written.and_then(|_| stdout.flush()) {
            // The reader has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other.context("standard output")?,
        }
    } else if is_file_name(out) {
        let named = || out.display().to_string();
        let mut file = Whole::create(out).with_context(named)?;
        let steps = write_lines(&tasks, &selection, extras, threads, &mut file, || bar.inc(1)).with_context(named)?;
        let content = file.finish().with_context(named)?;
        let lines = tasks.len() as u64 * selection.per_task();
        eprintln!("{}: {lines} instances, {steps} reference steps, sha256 {}", out.display(), content.sha256);
    } else {
        let finished = |lines| bar.inc(lines);
        let manifest = fill_folder(out, &tasks, &selection, extras, arguments.compress, threads, finished)?;
        bar.finish_and_clear();
        eprint!("{}", summary(&manifest, out, started.elapsed().as_secs_f64()));
    }
    bar.finish_and_clear();
    Ok(ExitCode::SUCCESS)
}
