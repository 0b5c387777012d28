//! The runs of a daemon. Work that needs several of the parts is done here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::cluster_link::ClusterLink;
use super::error::RunError;
use super::execution::Execution;
use super::execution::accept::Acceptance;
use super::execution::daily_cost::PaidTurn;
use super::execution::fork::Fork;
use super::execution::leases::Leases;
use super::execution::new_run::{Accepted, NewRun};
use super::execution::observers::{Observers, WrapObserver};
use super::index::StepIndexes;
use super::live::LiveRuns;
use super::live::live_run::LiveRun;
use super::reader::RunReader;
use super::record::{RunRecord, Status};
use super::schedules::Keeper;
use super::search::indexed::Indexed;
use super::store::{Clock, RunStore};
use super::trusted_clock::TrustedClock;
use super::uploads::JournalModules;
use crate::app::App;
use crate::metrics::Metrics;
use crate::telemetry::Telemetry;
use prime_journal::{Cluster, ClusterStatus, IdempotencyKey, Journal};
use prime_protocol::Cost;

/// Time after which a run that is asked to end is looked for again: a step of it may have been
/// decided meanwhile, so that it is elsewhere.
const ATTEMPT: Duration = Duration::from_millis(250);
/// Pause before a run is looked for again that moves between memory and journal.
const MOVES: Duration = Duration::from_millis(10);

/// Runs from their acceptance to their removal.
pub struct Runs {
    store: Arc<RunStore>,
    steps: StepIndexes,
    live: Arc<LiveRuns>,
    cluster: Arc<ClusterLink>,
    reader: RunReader,
    execution: Arc<Execution>,
    /// Set by the first round of retention.
    retention_clock: Mutex<Option<TrustedClock>>,
    indexed: Arc<Indexed>,
    keeper: Keeper,
}

impl Runs {
    /// Starts the thread that writes the journal. Call [`Runs::resume`] or [`Runs::follow_leases`]
    /// next. Must be called within an actix system.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        app: Arc<App>,
        journal: Arc<dyn Journal>,
        clock: Clock,
        metrics: Arc<Metrics>,
        telemetry: Option<Telemetry>,
    ) -> std::io::Result<Arc<Self>> {
        let window = Duration::from_millis(app.settings().journal.group_commit_ms);
        let committed = Arc::clone(&metrics);
        let measure = move |events, seconds| committed.journal_commit(events, seconds);
        app.tasks().find_uploads(Arc::new(JournalModules(Arc::clone(&journal))));
        let store = Arc::new(RunStore::start(
            journal,
            clock,
            window,
            Box::new(measure),
            app.tasks().clone(),
        )?);

        let (live, cluster) = (Arc::new(LiveRuns::default()), Arc::new(ClusterLink::default()));
        let indexed = Arc::<Indexed>::default();
        let observers = Observers::new(metrics, telemetry);
        let execution = Execution::new(
            app,
            Arc::clone(&store),
            Arc::clone(&live),
            Arc::clone(&cluster),
            observers,
        );
        Ok(Arc::new(Self {
            steps: StepIndexes::new(Arc::clone(&store)),
            reader: RunReader::new(
                Arc::clone(&store),
                Arc::clone(&live),
                Arc::clone(&cluster),
                Arc::clone(&indexed),
            ),
            store,
            live,
            cluster,
            execution: Arc::new(execution),
            retention_clock: Mutex::default(),
            indexed,
            keeper: Keeper::default(),
        }))
    }

    /// The journal: specs, events and reviews.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    pub(super) fn execution(&self) -> &Arc<Execution> {
        &self.execution
    }

    pub(super) fn indexed(&self) -> &Indexed {
        &self.indexed
    }

    pub(super) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(super) fn retention_clock(&self) -> &Mutex<Option<TrustedClock>> {
        &self.retention_clock
    }

    /// Answers questions about the steps of runs.
    pub fn steps(&self) -> &StepIndexes {
        &self.steps
    }

    /// Records and events of runs, wherever they are.
    pub fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// The configuration and agents of new runs.
    pub fn app(&self) -> Arc<App> {
        self.execution.app()
    }

    /// Replaces [`Runs::app`] for new runs and those that wait for their agents; open runs keep
    /// theirs.
    pub fn replace(&self, app: App) {
        self.execution.replace(app);
    }

    /// Wraps the observers of all new runs. Only the first call has an effect.
    pub fn observe_with(&self, wrap: WrapObserver) {
        self.execution.observers().wrap_with(wrap);
    }

    /// The metrics that count these runs.
    pub fn metrics(&self) -> &Metrics {
        self.execution.observers().metrics()
    }

    /// Resumes every open run of a journal that is this process's own; returns how many.
    ///
    /// # Errors
    /// When the journal cannot be read, or a thread cannot be started.
    pub fn resume(&self) -> Result<usize, RunError> {
        self.execution.resume()
    }

    /// Executes the runs of a shared journal whose leases this node gets, and no others. Replaces
    /// [`Runs::resume`].
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn follow_leases(
        &self,
        leases: Arc<Leases>,
        cluster: Arc<dyn Cluster>,
    ) -> Result<(), RunError> {
        self.execution.follow_leases(leases, cluster)
    }

    /// Checks for room, so that a run is refused before anything is computed for it. Only
    /// [`Runs::accept`] decides.
    ///
    /// # Errors
    /// `Full`, `OwnerFull` or `Draining`.
    pub fn has_room(&self, owner: &str) -> Result<(), RunError> {
        self.execution.has_room(owner)
    }

    /// Begins a turn of an owner that belongs to no run, if the owner may spend more today. Where
    /// that is limited, it waits for the owner's turn before; the next one waits until the result
    /// is dropped, which must be after [`Runs::count_try`].
    ///
    /// # Errors
    /// `DayPaid`, or the journal cannot be read.
    pub async fn begin_try(&self, owner: &str) -> Result<Option<PaidTurn>, RunError> {
        self.execution.begin_try(owner).await
    }

    /// Counts what a turn of an owner has cost that belongs to no run.
    pub fn count_try(&self, owner: &str, cost: Cost) {
        self.execution.count_try(owner, cost);
    }

    /// Accepts a run: when this returns, it is durable and executing.
    ///
    /// # Errors
    /// [`RunError`]; then the run does not exist.
    pub async fn accept(&self, new: NewRun) -> Result<Accepted, RunError> {
        match self.execution.accept(new).await? {
            Acceptance::New(record) => Ok(Accepted { record: *record, is_new: true }),
            Acceptance::Earlier(id) => self.earlier(id).await,
        }
    }

    async fn earlier(&self, id: String) -> Result<Accepted, RunError> {
        match self.reader.get(&id).await {
            Ok((_, record)) => Ok(Accepted { record, is_new: false }),
            // Keys outlive their runs, so that a late repetition does not execute them again.
            Err(RunError::NotFound(_)) => Err(RunError::KeySpent(id)),
            Err(error) => Err(error),
        }
    }

    /// The run as which this request was accepted before, if it was. What the request names may be
    /// gone since.
    ///
    /// # Errors
    /// The key was used for another request, its run was removed, or the journal cannot be read.
    pub async fn repeated(
        &self,
        owner: &str,
        key: &IdempotencyKey,
    ) -> Result<Option<Accepted>, RunError> {
        match self.execution.accepted_earlier(owner, key).await? {
            Some(id) => self.earlier(id).await.map(Some),
            None => Ok(None),
        }
    }

    /// Completes `work` even when the request is dropped because its client disconnected: half of
    /// it must not stay.
    ///
    /// # Errors
    /// Those of `work`, or `Draining` when the process ends first.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RunError>> + Send + 'static,
    ) -> Result<T, RunError> {
        self.execution.run_detached(work).await
    }

    /// Starts a run from the state of another.
    ///
    /// # Errors
    /// When the run or the event does not exist, the run was over at that event, or the event is
    /// not a step that a line can take the place of; or as for a new run.
    pub async fn fork(&self, parent: &str, fork: Fork, owner: &str) -> Result<RunRecord, RunError> {
        self.execution.fork(parent, fork, owner).await
    }

    /// Ends a run with what is committed, and waits at most `patience` for that to be durable.
    ///
    /// # Errors
    /// When the run does not exist, or the journal, by which other nodes learn of it, does not
    /// answer.
    pub async fn cancel(&self, id: &str, patience: Duration) -> Result<RunRecord, RunError> {
        let started = Instant::now();
        loop {
            let left = patience.saturating_sub(started.elapsed());
            self.ask_to_end(id, left.min(ATTEMPT)).await?;
            let (_, record) = self.reader.get(id).await?;
            // A run that is slow to end is returned as it is.
            if record.status.is_over() || started.elapsed() >= patience {
                return Ok(record);
            }
            // It moved between memory and journal, because a step was held or decided meanwhile.
            tokio::time::sleep(MOVES).await;
        }
    }

    /// Ends a run where it is now.
    async fn ask_to_end(&self, id: &str, patience: Duration) -> Result<(), RunError> {
        let live = self.live.get(id);

        // This applies to a run that is here, too: its lease may be lost before it ends.
        if self.is_shared() && !self.store.row(id).await?.is_over {
            self.cluster.request_cancel(id).await?;
            if live.is_none() {
                drop(tokio::time::timeout(patience, self.reader.ended_elsewhere(id)).await);
            }
        }

        if let Some(live) = live {
            let mut committed = live.stream.watch();
            live.cancel();
            let stream = &live.stream;
            let is_over =
                committed.wait_for(|committed| committed.is_over || stream.is_abandoned());
            drop(tokio::time::timeout(patience, is_over).await);
        }
        // It may have left the memory of its node since.
        if self.live.get(id).is_none() && self.store.row(id).await?.status == Status::Waiting.name()
        {
            self.end_waiting(id, patience).await?;
        }
        Ok(())
    }

    /// A run that this process executes.
    pub fn live(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.live.get(id)
    }

    /// Runs that this node executes, and that are not over.
    pub fn open_runs(&self) -> usize {
        self.live.count()
    }

    /// Runs of all nodes that are accepted and not over, as far as this one knows.
    pub fn open_runs_of_all(&self) -> usize {
        self.open_runs().saturating_add(self.cluster.open_elsewhere())
    }

    /// True if other nodes execute runs of the same journal.
    pub fn is_shared(&self) -> bool {
        self.cluster.is_shared()
    }

    /// The nodes of a shared journal and what they hold; `None` if the journal is this daemon's
    /// own.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn cluster(&self) -> Result<Option<ClusterStatus>, RunError> {
        self.cluster.status().await
    }

    /// True if the daemon is stopping, so that new runs are refused.
    pub fn is_draining(&self) -> bool {
        self.live.is_draining()
    }

    /// Becomes true when draining begins.
    pub(super) fn drained(&self) -> watch::Receiver<bool> {
        self.live.drained()
    }

    /// Refuses new runs from now on, and ends the streams of watchers.
    pub fn drain(&self) {
        self.live.drain();
    }

    /// Writes everything pending and accepts nothing more: the next process resumes the open runs.
    /// Blocks until that is done.
    pub fn park(&self) {
        self.drain();
        self.store.close();
        self.execution.observers().shutdown();
    }
}
