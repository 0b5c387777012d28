//! `prime-agents journal`: moves journals between stores. Without a daemon.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::output::{note, print};
use prime_journal::{Cluster as _, Copied, Journal, SqliteJournal, SqliteOptions, copy};
use prime_journal_postgres::{Needs, PostgresJournal, PostgresOptions, without_password};
use prime_service::runs::needs_of;

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
}

#[derive(Args)]
struct CopyArguments {
    /// The journal to read: an SQLite file, or the URL of a PostgreSQL (postgres://…)
    from: String,
    /// The journal to write, which is created if it is missing; it may have other runs
    to: String,
}

/// The needs of copied runs are those that they had where they were accepted. Nothing is executed
/// here, so none is met.
struct Copying;

impl Needs for Copying {
    fn of(&self, spec: &str) -> Vec<String> {
        needs_of(spec)
    }

    fn met(&self, _asked: &[String]) -> Vec<String> {
        Vec::new()
    }
}

fn open(place: &str) -> anyhow::Result<Box<dyn Journal>> {
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
    let JournalCommand::Copy(CopyArguments { from, to }) = &arguments.command;

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
