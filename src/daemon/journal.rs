//! The configured journal: a file of this daemon's own, or a PostgreSQL that several nodes share.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::runs::{RunError, Runs};
use crate::settings::Settings;
use prime_journal::lease::Effect;
use prime_journal::{Journal, JournalError, SqliteJournal, SqliteOptions};
use prime_journal_postgres::{PostgresJournal, PostgresOptions};

pub(super) enum OpenJournal {
    Sqlite(Arc<SqliteJournal>),
    Postgres { journal: Arc<PostgresJournal>, effects: Mutex<Option<Receiver<Effect<String>>>> },
}

impl OpenJournal {
    /// # Errors
    /// When it cannot be used: what is wrong, and what to do.
    pub(super) fn open(settings: &Settings) -> Result<Self, JournalError> {
        let url = &settings.journal.url;
        if url.is_empty() {
            let path = Path::new(&settings.journal.path);
            return Ok(Self::Sqlite(Arc::new(SqliteJournal::open(path, SqliteOptions::default())?)));
        }
        let (sender, effects) = channel();
        let node = rustix::system::uname();
        let options = PostgresOptions {
            node: format!("{}:{}", node.nodename().to_string_lossy(), std::process::id()),
            capacity: settings.server.queue_max as usize,
            commits_take: false,
            effects: Some(sender),
            ..PostgresOptions::default()
        };
        // Its methods block.
        let opened = std::thread::scope(|scope| scope.spawn(|| PostgresJournal::open(url, options)).join());
        let journal = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Self::Postgres { journal: Arc::new(journal), effects: Mutex::new(Some(effects)) })
    }

    pub(super) fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Self::Sqlite(journal) => Arc::clone(journal) as _,
            Self::Postgres { journal, .. } => Arc::clone(journal) as _,
        }
    }

    /// After a start that failed for another reason: leaves nothing behind that nobody used.
    pub(super) fn discard_if_unused(&self) {
        match self {
            Self::Sqlite(journal) => journal.discard_if_unused(),
            Self::Postgres { journal, .. } => journal.close(),
        }
    }

    /// Goes on with the open runs: all of a file, or those whose leases this node gets from now on. Returns how many are
    /// known already.
    ///
    /// # Errors
    /// When the journal cannot be read, or a thread cannot be started.
    pub(super) fn begin(&self, runs: &Arc<Runs>) -> Result<usize, RunError> {
        match self {
            Self::Sqlite(_) => runs.resume(),
            Self::Postgres { effects, .. } => {
                let effects = effects.lock().unwrap_or_else(PoisonError::into_inner).take();
                effects.map_or(Ok(()), |effects| runs.follow_leases(effects)).map(|()| 0)
            }
        }
    }

    /// Takes no further runs.
    pub(super) fn drain(&self) {
        if let Self::Postgres { journal, .. } = self {
            journal.drain();
        }
    }

    /// After the last commit: other nodes may take the runs of this one at once.
    pub(super) fn close(&self) {
        if let Self::Postgres { journal, .. } = self {
            journal.close();
        }
    }
}
