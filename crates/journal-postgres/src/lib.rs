//! The store in PostgreSQL, which any number of nodes share: leases and fencing as
//! [`prime_journal::lease`] describes them.
//!
//! Its methods block, so none may be called on a thread that polls futures.

#![warn(missing_docs)]

mod approvals;
mod assignees;
mod batch;
mod bulletin;
mod cluster;
mod error_code;
mod labels;
mod leases;
mod needs;
mod notice;
mod outbox;
mod overview;
mod parts;
mod probe;
mod queries;
mod retention;
mod room;
mod schedule_marks;
mod schema;
mod search;
mod session;
mod sqlstate;
mod statements;
mod text;
mod this_node;
mod uploads;
mod url;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::sync::watch;
use tokio::time::Instant;

use self::bulletin::News;
use self::error_code::Failure;
use self::leases::Leases;
use self::needs::Met;
pub use self::needs::Needs;
pub use self::notice::{Notice, OnNotice};
use self::session::Session;
pub use self::url::without_password;
use self::writer::Writer;
use prime_journal::lease::{NodeId, Timing};
use prime_journal::{
    Approvals, Assignees, FlaggedEvent, IdempotencyKey, Journal, JournalError, Outbox, Query,
    Removed, Retention, RunLabels, RunRow, RunRows, ScheduleMarks, SearchIndex, Segment, Size,
    Snapshot, Uploads, Write,
};

/// How a node uses the store.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The node's name in the table `node`, for people. Names need not differ.
    pub node: String,
    /// Most free runs that the node takes by itself; 0 takes none.
    pub capacity: usize,
    /// True if a commit takes the runs that it changes if no node holds them. False for a node that
    /// only executes the runs that notices name: a run that it has stopped may be free again.
    pub commits_take: bool,
    /// The durations of the node's leases.
    pub timing: Timing,
    /// How long work that was interrupted by a lost connection is retried before it fails as not
    /// writable.
    pub patience: Duration,
    /// Receives the store's notices; `None` ignores them.
    pub on_notice: Option<OnNotice>,
    /// Without it, accepted runs need nothing, and the node takes any run.
    pub needs: Option<Arc<dyn Needs>>,
}

impl Default for PostgresOptions {
    /// A lease of 10 s with a heartbeat every 2 s.
    fn default() -> Self {
        Self {
            node: String::new(),
            capacity: 0,
            commits_take: true,
            timing: Timing { lease_ms: 10_000, heartbeat_ms: 2_000 },
            patience: Duration::from_secs(30),
            on_notice: None,
            needs: None,
        }
    }
}

/// One node's view of the journal. Dropping it gives the node's runs back.
pub struct PostgresJournal {
    session: Session,
    leases: Arc<Leases>,
    writer: Mutex<Writer>,
    closed: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl PostgresJournal {
    /// Connects, creates the tables if there are none, and registers the node. `url` is a
    /// `postgres://` URL with libpq's parameters, `sslmode` among them; the tables are in the first
    /// schema of its `search_path`.
    ///
    /// # Errors
    /// [`JournalError::Database`]: what is wrong with the URL, the server or the schema.
    pub fn open(url: &str, options: PostgresOptions) -> Result<Self, JournalError> {
        let failed = |reason: String| JournalError::Database { database: url::shown(url), reason };
        let target = url::parse(url).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();

        let runtime = runtime.map_err(|error| failed(error.to_string()))?;

        let PostgresOptions { node, capacity, commits_take, timing, patience, on_notice, needs } =
            options;

        let session = Session::new(&target, runtime.handle().clone(), patience).map_err(failed)?;
        let leases =
            Arc::new(Leases::new(node, timing, capacity, on_notice, Met::new(needs.clone())));

        let prepared = runtime.block_on(prepare(&session));
        prepared.map_err(|failure| match failure {
            Failure::Final(error @ JournalError::Database { .. }) => error,
            Failure::Final(JournalError::NotWritable(reason))
            | Failure::Connection(reason)
            | Failure::Contention(reason)
            | Failure::Conflict(reason) => failed(reason),
            failure => failed(failure.into_error(&session.database).to_string()),
        })?;

        // Before the node registers, so that its first heartbeat is due early rather than late.
        let started = Instant::now();
        let registered = runtime.block_on(leases.register(&session));
        registered.map_err(|error| failed(format!("the node cannot be registered: {error}")))?;

        let (closed, is_closed) = watch::channel(false);

        let (kept, connections) = (Arc::clone(&leases), session.clone());
        let keep = move || runtime.block_on(kept.keep(connections, &target, started, is_closed));
        let thread = std::thread::Builder::new().name("postgres".to_owned()).spawn(keep);
        let thread = thread.map_err(|error| failed(error.to_string()))?;

        let writer = Mutex::new(Writer::new(commits_take, needs)?);
        Ok(Self { session, leases, writer, closed, thread: Mutex::new(Some(thread)) })
    }

    /// This node, unless it has to register again.
    pub fn node(&self) -> Option<NodeId> {
        self.leases.node().id()
    }

    /// The runs that this node holds.
    pub fn held(&self) -> Vec<String> {
        self.leases.node().held().map(|(run, _)| run.clone()).collect()
    }

    /// Gives a run back, after its last commit; any node may take it then.
    pub fn release(&self, id: &str) {
        self.leases.node().release(&id.to_owned());
        self.leases.this.wake.notify_one();
    }

    /// Takes no further runs.
    pub fn drain(&self) {
        self.leases.node().drain();
    }

    /// Gives the node's runs back, and ends its connections; nothing may use the journal any more.
    /// Blocks until that is done, for a few seconds at most.
    pub fn close(&self) {
        self.closed.send_replace(true);
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It panicked; there is nothing left to close.
            drop(thread.join());
        }
    }
}

/// Prepares the tables. A server that does not answer fails the start, but other nodes that start
/// meanwhile do not.
async fn prepare(session: &Session) -> Result<(), Failure> {
    let mut attempts = session.attempts();
    loop {
        match prepare_once(session).await {
            Err(Failure::Contention(_)) if attempts.pause().await => {}
            prepared => return prepared,
        }
    }
}

async fn prepare_once(session: &Session) -> Result<(), Failure> {
    let mut connection = session.connection().await?;
    let transaction = connection.transaction().await?;
    schema::check_durability(&transaction, &session.database).await?;
    schema::create(&transaction, &session.database).await?;
    Ok(transaction.commit().await?)
}

impl PostgresJournal {
    /// Lets this node, and others, look for a run that nobody holds.
    fn tell_of_free_run(&self) {
        self.leases.tell([News::Free]);
        self.leases.this.look_for_runs();
    }
}

impl Drop for PostgresJournal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Journal for PostgresJournal {
    fn commit(&self, writes: &[Write]) -> Result<(), JournalError> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.session.handle.block_on(writer.commit(&self.session, &self.leases, writes))
    }

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        self.session.run(async |client: &mut Object| queries::run(client, id).await)
    }

    fn run_of_key(
        &self,
        owner: &str,
        key: &str,
    ) -> Result<Option<(String, [u8; 32])>, JournalError> {
        self.session.run(async |client: &mut Object| queries::run_of_key(client, owner, key).await)
    }

    fn key_of_run(&self, id: &str) -> Result<Option<IdempotencyKey>, JournalError> {
        self.session.run(async |client: &mut Object| queries::key_of_run(client, id).await)
    }

    fn list(&self, query: &Query) -> Result<RunRows, JournalError> {
        self.session.run(async |client: &mut Object| queries::list(client, query).await)
    }

    fn open_runs(&self) -> Result<RunRows, JournalError> {
        self.session.run(async |client: &mut Object| queries::open_runs(client).await)
    }

    fn segments(
        &self,
        id: &str,
        after_seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, JournalError> {
        self.session
            .run(async |client: &mut Object| queries::segments(client, id, after_seq, bytes).await)
    }

    fn reviews(
        &self,
        id: &str,
        after_seq: u64,
        limit: u32,
    ) -> Result<Vec<FlaggedEvent>, JournalError> {
        self.session
            .run(async |client: &mut Object| queries::reviews(client, id, after_seq, limit).await)
    }

    fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, JournalError> {
        self.session.run(async |client: &mut Object| queries::snapshot(client, id).await)
    }

    fn reached_ms(&self) -> Result<Option<u64>, JournalError> {
        self.session.run(async |client: &mut Object| queries::reached_ms(client).await)
    }

    fn collect(&self, retention: &Retention) -> Result<Removed, JournalError> {
        self.session.run(async |client: &mut Object| retention::collect(client, retention).await)
    }

    fn size(&self) -> Result<Size, JournalError> {
        self.session.run(async |client: &mut Object| queries::size(client).await)
    }

    fn probe(&self) -> Result<(), JournalError> {
        let Some(node) = self.node() else {
            return Err(self.session.unreachable(probe::FORGOTTEN));
        };
        let batch = probe::batch(node)?;
        self.session.run(async |client: &mut Object| probe::send(client, node, &batch).await)
    }

    /// Does nothing: commits postpone no work here.
    fn fold(&self, _is_idle: bool) -> Result<(), JournalError> {
        Ok(())
    }

    fn uploads(&self) -> &dyn Uploads {
        self
    }

    fn search(&self) -> &dyn SearchIndex {
        self
    }

    fn assignees(&self) -> &dyn Assignees {
        self
    }

    fn labels(&self) -> &dyn RunLabels {
        self
    }

    fn outbox(&self) -> &dyn Outbox {
        self
    }

    fn schedule_marks(&self) -> &dyn ScheduleMarks {
        self
    }

    fn approvals(&self) -> &dyn Approvals {
        self
    }
}
