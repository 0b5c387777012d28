//! `study`: evaluations that are described in a file, kept as records and reported as a page.

mod compare;
mod daemons;
mod files;
mod leaderboard;
mod merge;
mod narrowing;
mod own_tasks;
mod plan;
mod prices;
mod report;
mod run;
mod systems;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueHint};

use crate::cli::Configuration;
use crate::cli::output::note;
use prime_study::definition::{Study, StudyError, load_with};
use prime_study::records::{Records, read_all};

#[derive(Args)]
pub struct StudyArguments {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Subcommand)]
enum StudyCommand {
    /// Check study files
    Check(files::CheckArguments),
    /// Print the JSON Schema of study files, or the columns of records
    Schema(files::SchemaArguments),
    /// List the studies of a folder
    List(files::ListArguments),
    /// Show what a study asks
    Show(files::ShowArguments),
    /// Estimate what a study costs, before it is run
    Plan(plan::PlanArguments),
    /// Run a study, or what is left of it
    Run(run::RunArguments),
    /// Make tables, figures and the page from records
    Report(report::ReportArguments),
    /// Compare two systems, or two studies, on the same instances
    Compare(compare::CompareArguments),
    /// Put records of several makers together, and judge every answer again
    Merge(merge::MergeArguments),
    /// Rank the systems of a study, on all its instances
    Leaderboard(leaderboard::LeaderboardArguments),
}

pub fn study(arguments: &StudyArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        StudyCommand::Check(arguments) => files::check(arguments),
        StudyCommand::Schema(arguments) => files::schema(arguments),
        StudyCommand::List(arguments) => files::list(arguments),
        StudyCommand::Show(arguments) => files::show(arguments),
        StudyCommand::Plan(arguments) => plan::plan(arguments),
        StudyCommand::Run(arguments) => run::run(arguments),
        StudyCommand::Report(arguments) => report::report(arguments),
        StudyCommand::Compare(arguments) => compare::compare(arguments),
        StudyCommand::Merge(arguments) => merge::merge(arguments),
        StudyCommand::Leaderboard(arguments) => leaderboard::leaderboard(arguments),
    }
}

/// Where a study's records are kept.
#[derive(Args)]
struct RecordsFile {
    /// File of the records [default: data/studies/NAME.jsonl]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    records: Option<PathBuf>,
}

impl RecordsFile {
    fn path(&self, study: &str) -> PathBuf {
        self.records
            .clone()
            .unwrap_or_else(|| Path::new("data/studies").join(format!("{study}.jsonl")))
    }
}

/// Reads a study file, which may ask tasks that the configuration defines.
///
/// # Errors
/// If it cannot be read or is not a study.
fn load(path: &Path, configuration: &Configuration) -> Result<Study, StudyError> {
    // What is wrong with the configuration is said where it is used.
    let settings = configuration.load().ok();
    let names = settings.map(|settings| settings.tasks.into_keys().collect::<Vec<_>>());
    load_with(path, &names.unwrap_or_default())
}

/// Reads files of records, and says what is ignored.
fn read_records(paths: &[PathBuf]) -> anyhow::Result<Records> {
    let records = read_all(paths)?;
    if records.torn_bytes > 0 {
        note!("a last line of {} bytes was not written whole and is ignored", records.torn_bytes);
    }
    Ok(records)
}
