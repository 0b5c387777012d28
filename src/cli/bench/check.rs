//! `bench check`: judges a file of outputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueHint};
use serde::Serialize;
use tokio::time::Instant;

use super::{instances, threads};
use crate::cli::interrupt::Interrupt;
use crate::cli::output::{Output, count, note, print};
use crate::cli::progress::bar;
use crate::cli::table::Table;
use crate::cli::values::kind;
use prime_bench::judge::{self, ErrorType, Finding, Report, Row, Stage};
use prime_bench::tasks::{BASE_SEED, Kind, Kinds};
use prime_dataset::files::Whole;

/// Findings that are printed. `--output json` and `--details` have all of them.
const FINDINGS_SHOWN: usize = 20;

#[derive(Args)]
pub struct CheckArguments {
    /// JSON Lines of {"id": …, "output": "…"} or {"id": …, "actions": […], "answer": …}; .zst is
    /// decompressed, - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Base seed of the instances that the ids refer to
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Kinds of constraints to check; `transition` runs the algorithm beside the trace
    #[arg(
        long,
        value_name = "KIND",
        value_parser = kind(),
        value_delimiter = ',',
        default_values_t = Kind::ALL
    )]
    kinds: Vec<Kind>,
    /// Write the judgement of every line to this file, as JSON Lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    details: Option<PathBuf>,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The report and how it was made.
#[derive(Serialize)]
struct Checked {
    kinds: Vec<&'static str>,
    base_seed: u64,
    #[serde(flatten)]
    report: Report,
    /// Lines that could not be attributed to an instance, or repeat one.
    findings: Vec<Finding>,
    seconds: f64,
    steps_per_second: f64,
}

fn open(path: &Path) -> anyhow::Result<(Box<dyn BufRead>, Option<u64>)> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(io::stdin())), None));
    }

    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    let length = file.metadata()?.len();
    let file = BufReader::with_capacity(1 << 18, file);

    // The decompressed length is unknown, so there is no progress to show.
    if path.extension().is_some_and(|extension| extension == "zst") {
        return Ok((
            Box::new(BufReader::with_capacity(1 << 18, zstd::Decoder::with_buffer(file)?)),
            None,
        ));
    }

    Ok((Box::new(file), Some(length)))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn optional(value: Option<f64>, scale: f64) -> String {
    value.map_or("-".to_owned(), |value| format!("{:.1}", value * scale))
}

/// An accuracy with its 95 % interval, in per cent.
fn accuracy(row: &Row) -> String {
    format!("{} ({}–{})", percent(row.accuracy), percent(row.low), percent(row.high))
}

fn row(row: &Row) -> [String; 12] {
    let [format, syntax, semantic, result] =
        Stage::ALL.map(|stage| percent(row.stages[stage.name()]));
    [
        row.name.clone(),
        instances(row.submissions, row.inputs),
        format,
        syntax,
        semantic,
        result,
        accuracy(row),
        optional(row.partial_credit, 100.0),
        row.efficiency.map_or("-".to_owned(), |value| format!("{value:.2}")),
        optional(row.first_error_mean, 1.0),
        optional(row.faithfulness, 100.0),
        format!("{} / {} / {}", row.critical, row.major, row.minor),
    ]
}

fn counts(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    let parts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// The first errors of wrong traces by type, each with what the type means.
fn first_errors(errors: &BTreeMap<&'static str, u64>) -> String {
    let known = ErrorType::ALL.into_iter();
    let lines = known.filter_map(|kind| Some((kind, *errors.get(kind.name())?)));
    let lines: Vec<_> = lines
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("\n  {} {count}: {}", kind.name(), kind.meaning()))
        .collect();
    if lines.is_empty() { " none".to_owned() } else { lines.concat() }
}

/// What must be known beside an accuracy: outputs that count as wrong because they cannot be read,
/// and lines that do not count.
fn reservations(unreadable: u64, not_counted: u64) -> String {
    let mut parts = Vec::new();
    if unreadable > 0 {
        parts.push(format!("{} unreadable and so wrong", count(unreadable, "output")));
    }
    if not_counted > 0 {
        parts.push(format!("{} not counted", count(not_counted, "line")));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn text(checked: &Checked) -> String {
    let report = &checked.report;
    let header = [
        "task",
        "outputs",
        "format %",
        "syntax %",
        "semantic %",
        "result %",
        "accuracy % (95 %)",
        "partial %",
        "efficiency",
        "first error %",
        "faithful %",
        "critical / major / minor",
    ];

    let rows = report
        .tasks
        .iter()
        .chain(&report.categories)
        .chain(&report.levels)
        .chain([&report.overall]);
    let overall = &report.overall;

    format!(
        "{}\nAccuracy: {} % of the outputs{}; mean over tasks {} %\nFirst error of each wrong trace:{}\n\
         Wrong answers without a trace: {}\nViolated constraints: {}\nChecked kinds: {}\n\
         Not judged: {}\n{} in {:.2} s: {:.2} M/s\n",
        Table::new(header, rows.map(row)),
        percent(overall.accuracy),
        reservations(overall.unreadable, checked.findings.len() as u64),
        percent(report.accuracy_of_tasks),
        first_errors(&overall.errors),
        overall.unlocated,
        counts(overall.violations.iter().map(|(name, count)| (*name, *count))),
        checked.kinds.join(", "),
        count(checked.findings.len() as u64, "line"),
        count(overall.lines, "step"),
        checked.seconds,
        checked.steps_per_second / 1e6,
    )
}

pub fn check(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let kinds: Kinds = arguments.kinds.iter().copied().collect();
    let (input, length) = open(&arguments.file)?;

    let interrupt = Interrupt::start()?;
    let bar = bar(length.unwrap_or_default(), "byte");
    let input: Box<dyn BufRead> = match length {
        Some(_) => Box::new(BufReader::with_capacity(1 << 18, bar.wrap_read(input))),
        None => input,
    };

    let details_failed =
        || arguments.details.as_ref().map_or(String::new(), |path| path.display().to_string());
    let mut details =
        arguments.details.as_deref().map(Whole::create).transpose().with_context(details_failed)?;

    let (mut findings, mut unreadable) = (Vec::new(), 0);
    let started = Instant::now();
    let input = interrupt.until(input);
    let report =
        judge::check(input, arguments.base_seed, kinds, threads(arguments.threads), |judged| {
            if let Some(details) = &mut details {
                match judged {
                    Ok(judgement) => serde_json::to_writer(&mut *details, judgement)?,
                    Err(finding) => serde_json::to_writer(&mut *details, finding)?,
                }
                details.write_all(b"\n")?;
            }
            if let Ok(judgement) = judged
                && let Some(reason) = &judgement.unreadable
            {
                unreadable += 1;
                if unreadable <= FINDINGS_SHOWN {
                    bar.suspend(|| note!("{} counts as wrong: {reason}", judgement.id));
                }
            }
            if let Err(finding) = judged {
                if findings.len() < FINDINGS_SHOWN {
                    bar.suspend(|| note!("line {}: {}", finding.line, finding.problem));
                }
                findings.push(finding.clone());
            }
            Ok(())
        });

    let report = report.with_context(|| format!("{}", arguments.file.display()))?;
    bar.finish_and_clear();
    if let Some(details) = details {
        details.finish().with_context(details_failed)?;
    }

    // An accuracy of nothing would be a figure that nobody measured.
    ensure!(
        report.overall.submissions > 0 || !findings.is_empty() || interrupt.stop().is_some(),
        "{}: there are no outputs in it; each line is an object with id and output",
        arguments.file.display()
    );

    if findings.len() > FINDINGS_SHOWN {
        note!(
            "and {} more that cannot be judged",
            count((findings.len() - FINDINGS_SHOWN) as u64, "line")
        );
    }

    let seconds = started.elapsed().as_secs_f64();
    let checked = Checked {
        kinds: kinds.iter().map(Kind::name).collect(),
        base_seed: arguments.base_seed,
        steps_per_second: report.overall.lines as f64 / seconds.max(1e-9),
        report,
        seconds,
        findings,
    };

    match arguments.output {
        Output::Json => print(serde_json::to_string_pretty(&checked)? + "\n")?,
        Output::Text => print(text(&checked))?,
    }

    if let Some(stop) = interrupt.stop() {
        note!("interrupted: {} judged", count(checked.report.overall.submissions, "output"));
        return Ok(ExitCode::from(stop.exit_code()));
    }

    // A wrong output is a result; a line that cannot be judged is a mistake to fix.
    Ok(if checked.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
