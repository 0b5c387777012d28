//! The configured journal: a file of this daemon's own, or a PostgreSQL that several nodes share.

use std::path::Path;
use std::sync::Arc;

use super::clock::now_ms;
use super::daemon_error::DaemonError;
use prime_journal::lease::{Effect, Timing};
use prime_journal::{Cluster, Journal, JournalError, SqliteJournal, SqliteOptions};
use prime_journal_postgres::{Needs, Notice, OnNotice, PostgresJournal, PostgresOptions};
use prime_service::app::App;
use prime_service::metrics::Metrics;
use prime_service::runs::{Leases, RunError, Runs, needs_of, rank_of};
use prime_service::telemetry::Telemetry;
use prime_settings::Settings;

/// Heartbeats per lease duration.
const HEARTBEATS: u64 = 10;

fn timing(lease_ms: u64) -> Timing {
    Timing { lease_ms, heartbeat_ms: lease_ms / HEARTBEATS }
}

/// The name of this node in the journal, for people.
pub(super) fn node_name() -> String {
    format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id())
}

fn pass_on(leases: Arc<Leases>) -> OnNotice {
    Arc::new(move |notice| match notice {
        Notice::Lease(Effect::Start(id)) => leases.start(id),
        Notice::Lease(Effect::Stop(id)) => leases.stop(&id),
        Notice::Cancel(id) => leases.cancel(&id),
        Notice::Changed(id) => leases.changed(&id),
    })
}

/// What the agents of runs need, and what the current configuration has of it.
struct Agents(Arc<Leases>);

impl Needs for Agents {
    fn of(&self, spec: &str) -> Vec<String> {
        needs_of(spec)
    }

    fn rank_ms(&self, spec: &str) -> Option<i64> {
        rank_of(spec)
    }

    fn met(&self, asked: &[String]) -> Vec<String> {
        self.0.needs_met(asked)
    }
}

pub(super) enum OpenJournal {
    Sqlite(Arc<SqliteJournal>),
    Postgres { journal: Arc<PostgresJournal>, leases: Arc<Leases> },
}

impl OpenJournal {
    /// # Errors
    /// When it cannot be used: what is wrong, and what to do.
    pub(super) fn open(settings: &Settings) -> Result<Self, JournalError> {
        let url = &settings.journal.url;
        if url.is_empty() {
            let path = Path::new(&settings.journal.path);
            return Ok(Self::Sqlite(Arc::new(SqliteJournal::open(
                path,
                SqliteOptions::default(),
            )?)));
        }

        let leases = Arc::new(Leases::default());
        // The leases know the runs only later, when `begin` connects the two.
        let options = PostgresOptions {
            node: node_name(),
            capacity: settings.server.queue_max as usize,
            commits_take: false,
            timing: timing(settings.journal.lease_ms),
            on_notice: Some(pass_on(Arc::clone(&leases))),
            needs: Some(Arc::new(Agents(Arc::clone(&leases)))),
            ..PostgresOptions::default()
        };

        // Its methods block.
        let opened =
            std::thread::scope(|scope| scope.spawn(|| PostgresJournal::open(url, options)).join());
        let journal = opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;

        Ok(Self::Postgres { journal: Arc::new(journal), leases })
    }

    pub(super) fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Self::Sqlite(journal) => Arc::clone(journal) as _,
            Self::Postgres { journal, .. } => Arc::clone(journal) as _,
        }
    }

    /// Cleans up after a start that failed for another reason: removes what nobody used.
    pub(super) fn discard_if_unused(&self) {
        match self {
            Self::Sqlite(journal) => journal.discard_if_unused(),
            Self::Postgres { journal, .. } => journal.close(),
        }
    }

    /// Continues the open runs: all of a file, or those whose leases this node gets from now on.
    /// Returns how many are known already.
    ///
    /// # Errors
    /// When the journal cannot be read, or a thread cannot be started.
    pub(super) fn begin(&self, runs: &Arc<Runs>) -> Result<usize, RunError> {
        match self {
            Self::Sqlite(_) => runs.resume(),
            Self::Postgres { journal, leases } => runs
                .follow_leases(Arc::clone(leases), Arc::clone(journal) as Arc<dyn Cluster>)
                .map(|()| 0),
        }
    }

    /// Takes no further runs.
    pub(super) fn drain(&self) {
        if let Self::Postgres { journal, .. } = self {
            journal.drain();
        }
    }

    /// Releases the runs of this node, which other nodes may then take at once. Call it after the
    /// last commit.
    pub(super) fn close(&self) {
        if let Self::Postgres { journal, .. } = self {
            journal.close();
        }
    }
}

/// Opens the configured journal, and starts the runs on it.
pub(super) fn open_runs(
    app: App,
    metrics: Arc<Metrics>,
    telemetry: Option<Telemetry>,
) -> Result<(OpenJournal, Arc<Runs>), DaemonError> {
    let journal = OpenJournal::open(app.settings())?;
    let runs = Runs::start(Arc::new(app), journal.journal(), now_ms, metrics, telemetry);
    Ok((journal, runs.map_err(DaemonError::Serve)?))
}
