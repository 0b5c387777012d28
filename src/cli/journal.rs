//! `prime-agents journal`: moves journals between stores, and checks and salvages their files.
//! Without a daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::output::{Output, note, print, print_json};
use prime_journal::{
    Checked, Cluster as _, Copied, CutRun, DamagedRow, Journal, SqliteFile, SqliteJournal,
    SqliteOptions, copy,
};
use prime_journal_postgres::{Needs, PostgresJournal, PostgresOptions, without_password};
use prime_service::runs::{needs_of, rank_of};

#[derive(Args)]
pub struct JournalArguments {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand)]
enum JournalCommand {
    /// Copy all runs of one journal to another, and verify their hash chains; stop the daemons of
    /// both first
    Copy(CopyArguments),
    /// Look for damaged pages and rows and for broken hash chains in an SQLite file; changes
    /// nothing; stop its daemon first
    Check(CheckArguments),
    /// Write all that can be read of a damaged SQLite file to a new one, and say what is lost; stop
    /// the daemon first
    Salvage(SalvageArguments),
}

#[derive(Args)]
struct CopyArguments {
    /// The journal to read: an SQLite file, or the URL of a PostgreSQL (postgres://…)
    from: String,
    /// The journal to write, which is created if it is missing; it may have other runs
    to: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
struct CheckArguments {
    /// The journal to read: an SQLite file
    file: PathBuf,
}

#[derive(Args)]
struct SalvageArguments {
    /// The journal to read: an SQLite file
    from: PathBuf,
    /// The file to write, which must not exist
    to: PathBuf,
}

/// The needs of copied runs are those that they had where they were accepted. Nothing is executed
/// here, so none is met.
struct Copying;

impl Needs for Copying {
    fn of(&self, spec: &str) -> Vec<String> {
        needs_of(spec)
    }

    fn rank_ms(&self, spec: &str) -> Option<i64> {
        rank_of(spec)
    }

    fn met(&self, _asked: &[String]) -> Vec<String> {
        Vec::new()
    }
}

/// Opens a journal that no daemon uses: an SQLite file, or the URL of a PostgreSQL.
pub fn open(place: &str) -> anyhow::Result<Box<dyn Journal>> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| place.starts_with(scheme)) {
        return Ok(Box::new(SqliteJournal::open(Path::new(place), SqliteOptions::default())?));
    }

    let node = format!("journal copy:{}", std::process::id());
    let needs: Option<Arc<dyn Needs>> = Some(Arc::new(Copying));
    let journal = PostgresJournal::open(
        place,
        PostgresOptions { node, needs, ..PostgresOptions::default() },
    )?;

    let others = journal.status()?.nodes.into_iter().filter(|node| !node.is_this);
    let others: Vec<_> = others.map(|node| node.name).collect();

    if !others.is_empty() {
        bail!(
            "{}: these nodes use it: {}: stop them first (one that was killed is forgotten when \
             its lease ends, once another node runs)",
            without_password(place),
            others.join(", ")
        );
    }

    Ok(Box::new(journal))
}

pub fn journal(arguments: &JournalArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        JournalCommand::Copy(arguments) => copy_journal(arguments),
        JournalCommand::Check(CheckArguments { file }) => check(file),
        JournalCommand::Salvage(SalvageArguments { from, to }) => salvage(from, to),
    }
}

fn check(file: &Path) -> anyhow::Result<ExitCode> {
    let checked = SqliteFile::open(file)?.check()?;
    report(&checked)?;

    if checked.is_whole() {
        print(format_args!("{} runs with {} events are whole\n", checked.runs, checked.events))?;
        return Ok(ExitCode::SUCCESS);
    }
    note!(
        "error: {}: it is damaged: restore a backup, or save what can be read with `prime-agents \
         journal salvage {} NEW_FILE`",
        file.display(),
        file.display()
    );
    Ok(ExitCode::FAILURE)
}

fn salvage(from: &Path, to: &Path) -> anyhow::Result<ExitCode> {
    if to.exists() {
        bail!("{}: it exists already: name a new file", to.display());
    }
    let file = SqliteFile::open(from).context("the journal to read")?;
    let target = SqliteJournal::open(to, SqliteOptions::default()).context("the file to write")?;

    let saved = file.salvage(&target)?;
    report(&saved)?;
    let (lost, cut) = (saved.lost.len(), saved.cut.len());
    print(format_args!(
        "{}: {} runs with {} events were saved; {lost} rows are lost, {cut} runs have lost \
         events\n",
        to.display(),
        saved.runs,
        saved.events
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what is damaged, a line for each page, row and run. What a damaged file holds may be
/// anything, so control characters are escaped.
fn report(checked: &Checked) -> anyhow::Result<()> {
    for finding in &checked.pages {
        print(format_args!("page: {}\n", finding.escape_debug()))?;
    }
    for DamagedRow { id, reason } in &checked.lost {
        print(format_args!("lost: run {id:?}: {}\n", reason.escape_debug()))?;
    }
    for CutRun { id, kept, committed, reason } in &checked.cut {
        let reason = reason.escape_debug();
        print(format_args!("cut: run {id:?}: {kept} of {committed} events remain: {reason}\n"))?;
    }
    for DamagedRow { id, reason } in &checked.bare {
        print(format_args!("incomplete: run {id:?}: {}\n", reason.escape_debug()))?;
    }
    Ok(())
}

fn copy_journal(CopyArguments { from, to, output }: &CopyArguments) -> anyhow::Result<ExitCode> {
    if !from.contains("://") && !Path::new(from).exists() {
        bail!(
            "{from}: there is no such file: give the journal of a daemon (journal.path), or a \
             postgres:// URL"
        );
    }
    if from == to {
        bail!("{}: a journal cannot be copied to itself", without_password(from));
    }

    let source = open(from).context("the journal to read")?;
    let target = open(to).context("the journal to write")?;

    match copy(source.as_ref(), target.as_ref()) {
        Ok(Copied { runs, events, known, open }) if *output == Output::Json => {
            print_json(&json!({"runs": runs, "events": events, "known": known, "open": open}))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Copied { runs, events, known, open }) => {
            print(format_args!(
                "{runs} runs with {events} events are in both, all chains verified; {known} were \
                 there before, {open} are not over\n"
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            note!("error: {error}: what was copied before stays");
            Ok(ExitCode::FAILURE)
        }
    }
}
