//! The runs of a daemon: admits new ones and finds every run, open or finished. Executing them is
//! `execute`'s part.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use actix::ArbiterHandle;
use dashmap::DashMap;
use tokio::sync::{oneshot, watch};
use tracing::Instrument as _;

use super::admission::{OpenRuns, RunSlot};
use super::batch::NotAccepted;
use super::elsewhere::Elsewhere;
use super::event_stream::EventStream;
use super::execute::Start;
use super::index::IndexCache;
use super::live_run::LiveRun;
use super::progress::Progress;
use super::record::{RunRecord, Status};
use super::spec::RunSpec;
use super::writer::Writer;
use crate::app::App;
use crate::metrics::Metrics;
use crate::telemetry::Telemetry;
use prime_agent_set::Basis;
use prime_bench::tasks::Problem;
use prime_journal::{
    ChainHash, Cluster, Head, IdempotencyKey, Journal, JournalError, ReviewCounts, RunRow, Segment,
    Size,
};
use prime_report::{RunContext, RunResult};
use prime_runtime::Observer;

/// Why a run could not be accepted, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(
        "there is no run {0}; finished runs are removed after journal.retention_days, and when the journal exceeds journal.retention_bytes"
    )]
    NotFound(String),
    #[error("{open} runs are open, and server.queue_max is {limit}: try again later")]
    Full { open: usize, limit: u32 },
    #[error(
        "{open} runs of this key are open, and it may have {limit} (open_runs_max of the key, or \
         server.key_open_runs_max): wait until one of them ends, or cancel one"
    )]
    OwnerFull { open: usize, limit: u32 },
    #[error("the daemon is stopping: submit the run again in a moment")]
    Draining,
    #[error("{0}")]
    NotWritable(String),
    #[error(
        "this Idempotency-Key was used with another request, for run {0}: use a new key for a new request"
    )]
    KeyReused(String),
    #[error(
        "this Idempotency-Key was used for run {0}, which was removed since, and is not executed again: use a new key to \
         submit the request as a new run"
    )]
    KeySpent(String),
    #[error("no new runs at present: {0}")]
    EngineLost(String),
    #[error("{0}")]
    Agents(String),
    #[error("{0}")]
    Conflict(String),
    #[error(
        "event {seq} of this run is not a step that needs review: GET /v1/runs/{id}/reviews lists those"
    )]
    NotFlagged { id: String, seq: u64 },
    #[error(
        "event {0} of this run is not a step, or not durable yet: GET /v1/runs/ID/steps lists the steps"
    )]
    NoSuchStep(u64),
    #[error(
        "this run has no step of trajectory {round}.{trajectory} yet: GET /v1/runs/ID/tree lists its trajectories"
    )]
    NoSuchTrajectory { round: u32, trajectory: u32 },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal holds a row that this version cannot read: {0}")]
    Unreadable(String),
}

impl From<NotAccepted> for RunError {
    fn from(reason: NotAccepted) -> Self {
        match reason {
            NotAccepted::Full { open, most } => Self::Full {
                open: usize::try_from(open).unwrap_or(usize::MAX),
                limit: u32::try_from(most).unwrap_or(u32::MAX),
            },
            NotAccepted::NotWritable(reason) => Self::NotWritable(reason),
        }
    }
}

/// A run to accept.
pub struct NewRun {
    pub owner: String,
    pub key: Option<IdempotencyKey>,
    pub spec: RunSpec,
    pub problem: Arc<dyn Problem>,
}

/// A run that was accepted now, or earlier under the same key.
pub struct Accepted {
    pub record: RunRecord,
    pub is_new: bool,
}

/// An owner and their idempotency key.
type KeyName = (String, String);

/// Milliseconds since 1970.
pub type Clock = fn() -> u64;

/// Wraps the observer that records a run.
pub type WrapObserver = Box<dyn Fn(&RunSpec, Arc<dyn Observer>) -> Arc<dyn Observer> + Send + Sync>;

pub struct Runs {
    app: RwLock<Arc<App>>,
    /// Counts the calls of [`Runs::replace`].
    replaced: watch::Sender<u64>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) writer: Writer,
    pub(super) metrics: Arc<Metrics>,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) live: DashMap<String, Arc<LiveRun>>,
    pub(super) open: OpenRuns,
    /// Requests with a key that are being accepted: the second waits for the first.
    keys: Mutex<HashMap<KeyName, Arc<tokio::sync::Mutex<()>>>>,
    draining: watch::Sender<bool>,
    /// The other nodes, where the journal is shared.
    pub(super) cluster: OnceLock<Arc<dyn Cluster>>,
    pub(super) elsewhere: Elsewhere,
    /// Of the runs whose steps were asked for.
    pub(super) indexes: IndexCache,
    pub(super) clock: Clock,
    pub(super) wrap_observer: OnceLock<WrapObserver>,
    /// Executes the runs. Not a thread of the server, whose threads end before the process does.
    pub(super) arbiter: ArbiterHandle,
}

/// An id that sorts by time.
fn new_id(now_ms: u64) -> String {
    format!("run_{:011x}{:016x}", now_ms & 0xfff_ffff_ffff, rand::random::<u64>())
}

impl Runs {
    /// Starts the writer thread. Call [`Runs::resume`] next. Must be called within an actix system.
    ///
    /// # Errors
    /// When the writer's thread cannot be started.
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
        let writer = Writer::start(Arc::clone(&journal), window, Box::new(measure))?;
        Ok(Arc::new(Self {
            app: RwLock::new(app),
            replaced: watch::Sender::new(0),
            journal,
            writer,
            metrics,
            telemetry,
            live: DashMap::new(),
            open: OpenRuns::default(),
            keys: Mutex::default(),
            draining: watch::Sender::new(false),
            cluster: OnceLock::new(),
            elsewhere: Elsewhere::default(),
            indexes: IndexCache::default(),
            clock,
            wrap_observer: OnceLock::new(),
            arbiter: actix::Arbiter::current(),
        }))
    }

    /// The configuration and agents of new runs.
    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces [`Runs::app`] for new runs and those that wait for their agents; open runs keep
    /// theirs.
    pub fn replace(&self, app: App) {
        *self.app.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(app);
        self.limit_open_runs();
        self.replaced.send_modify(|count| *count += 1);
    }

    /// Changes with each [`Runs::replace`].
    pub(super) fn replacements(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// Wraps the observers of all new runs. Only the first call has an effect.
    pub fn observe_with(&self, wrap: WrapObserver) {
        drop(self.wrap_observer.set(wrap));
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The size of the journal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn journal_size(&self) -> Result<Size, RunError> {
        self.read(|journal| journal.size()).await
    }

    /// Why the journal cannot be written at present, if so.
    pub fn journal_failure(&self) -> Option<String> {
        self.writer.failure()
    }

    /// Tests whether the journal can be written, by writing.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn probe(&self) -> Result<(), String> {
        self.writer.probe().await.map_err(|reason| RunError::from(reason).to_string())
    }

    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Becomes true when draining begins.
    pub(super) fn drained(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Refuses new runs from now on, and ends the streams of watchers.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Writes everything pending and accepts nothing more: the next process resumes the open runs.
    /// Blocks until that is done.
    pub fn park(&self) {
        self.drain();
        self.writer.close();
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown();
        }
    }

    /// Accepts a run: when this returns, it is durable and executing.
    ///
    /// # Errors
    /// [`RunError`]; then the run does not exist.
    pub async fn accept(self: &Arc<Self>, new: NewRun) -> Result<Accepted, RunError> {
        let runs = Arc::clone(self);
        self.run_detached(async move { runs.accept_once(new).await }).await
    }

    /// Completes `work` even when the request is dropped because its client disconnected: half of
    /// it must not stay.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RunError>> + Send + 'static,
    ) -> Result<T, RunError> {
        let (reply, result) = oneshot::channel();
        let work = async move {
            // The caller may have stopped waiting.
            drop(reply.send(work.await));
        };
        self.arbiter.spawn(work.in_current_span());
        result.await.unwrap_or(Err(RunError::Draining))
    }

    /// Accepts a run, once per idempotency key.
    async fn accept_once(self: &Arc<Self>, new: NewRun) -> Result<Accepted, RunError> {
        let Some(key) = new.key.clone() else {
            return self
                .accept_new(new, None)
                .await
                .map(|record| Accepted { record, is_new: true });
        };
        let name = (new.owner.clone(), key.key.clone());
        let turn = Arc::clone(
            self.keys
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(name.clone())
                .or_default(),
        );
        let accepted = {
            let _turn = turn.lock().await;
            self.accept_keyed(new, key).await
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // Ours and the map's: no other request waits for this key.
        if Arc::strong_count(&turn) == 2 {
            keys.remove(&name);
        }
        accepted
    }

    async fn accept_keyed(
        self: &Arc<Self>,
        new: NewRun,
        key: IdempotencyKey,
    ) -> Result<Accepted, RunError> {
        let owner = new.owner.clone();
        if let Some(known) = self.accepted_earlier(&owner, &key).await? {
            return Ok(known);
        }
        match self.accept_new(new, Some(key.clone())).await {
            Ok(record) => Ok(Accepted { record, is_new: true }),
            // Another node may have accepted it at the same time.
            Err(error) if self.is_shared() => {
                self.accepted_earlier(&owner, &key).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The run for which the key was used with the same request, if any.
    async fn accepted_earlier(
        self: &Arc<Self>,
        owner: &str,
        key: &IdempotencyKey,
    ) -> Result<Option<Accepted>, RunError> {
        let (owner, text) = (owner.to_owned(), key.key.clone());
        match self.read(move |journal| journal.run_of_key(&owner, &text)).await? {
            Some((id, fingerprint)) if fingerprint == key.fingerprint => {
                match self.get(&id).await {
                    Ok((_, record)) => Ok(Some(Accepted { record, is_new: false })),
                    Err(RunError::NotFound(_)) => Err(RunError::KeySpent(id)),
                    Err(error) => Err(error),
                }
            }
            Some((id, _)) => Err(RunError::KeyReused(id)),
            None => Ok(None),
        }
    }

    async fn accept_new(
        self: &Arc<Self>,
        new: NewRun,
        key: Option<IdempotencyKey>,
    ) -> Result<RunRecord, RunError> {
        if self.is_draining() {
            return Err(RunError::Draining);
        }
        self.check_engines(&new.spec)?;
        let slot = self.reserve_slot(&new.owner)?;
        let (live, row) = self.prepare(&new.owner, new.spec)?;
        self.writer.accept(row, key).await?;
        let record = live.record();
        self.launch(live, Start::new(new.problem), slot);
        Ok(record)
    }

    /// Refuses a new run whose engine is out of service; open ones wait for it.
    pub(super) fn check_engines(&self, spec: &RunSpec) -> Result<(), RunError> {
        let lost = spec.recorded.as_ref().and_then(|recorded| self.app().lost_engine(recorded));
        lost.map_or(Ok(()), |lost| Err(RunError::EngineLost(lost.to_string())))
    }

    /// Makes a run and its row, without registering either.
    pub(super) fn prepare(
        &self,
        owner: &str,
        spec: RunSpec,
    ) -> Result<(Arc<LiveRun>, RunRow), RunError> {
        let basis = match &spec.recorded {
            Some(recorded) => recorded.basis,
            None => {
                let agents = self.app().agents_named(&spec.agents);
                agents.map_err(|error| RunError::Agents(error.to_string()))?.basis()
            }
        };
        let context = context_of(&spec, basis);
        let now = (self.clock)();
        let text = serde_json::to_string(&spec).expect("invariant: specs serialise");
        let head = Head { seq: 0, hash: ChainHash::genesis(&text) };
        let row = RunRow {
            id: new_id(now),
            owner: owner.to_owned(),
            created_ms: now,
            updated_ms: now,
            task: spec.task.clone(),
            status: Status::Queued.name().to_owned(),
            is_over: false,
            resumed: 0,
            spec: text,
            summary: serde_json::to_string(&RunResult::open(&context))
                .expect("invariant: results serialise"),
            split: spec.split.map(|arm| arm.name().to_owned()),
            reviews: ReviewCounts::default(),
            head,
        };
        let stream = self.stream(&row, Progress::default());
        Ok((Arc::new(LiveRun::new(&row, spec, context, stream)), row))
    }

    pub(super) fn stream(&self, row: &RunRow, progress: Progress) -> Arc<EventStream> {
        let (backpressure, announce) = self.writer.sink();
        EventStream::new(row.id.clone(), row.head, progress, backpressure, announce)
    }

    /// Executes a durable run. The current span becomes the parent of the run's.
    pub(super) fn launch(self: &Arc<Self>, live: Arc<LiveRun>, start: Start, slot: RunSlot) {
        self.live.insert(live.stream.id.clone(), Arc::clone(&live));
        let request = tracing::Span::current();
        self.arbiter.spawn(super::execute::execute(Arc::clone(self), live, start, slot, request));
    }

    /// Reads the journal on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, RunError> {
        let journal = Arc::clone(&self.journal);
        let result = tokio::task::spawn_blocking(move || read(journal.as_ref())).await;
        Ok(result.map_err(|_| RunError::Draining)??)
    }

    pub fn live(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.live.get(id).map(|live| Arc::clone(&live))
    }

    /// A run with its owner.
    ///
    /// # Errors
    /// When it does not exist, or the journal cannot be read.
    pub async fn get(&self, id: &str) -> Result<(String, RunRecord), RunError> {
        if let Some(live) = self.open(id) {
            self.count_events(&live).await;
            let record = live.record();
            if live.is_counted() && !live.has_reviews() {
                return Ok((live.owner.clone(), record));
            }
            // Reviews are in the journal only.
            let reviews = self.row(id).await?.reviews;
            return Ok((live.owner.clone(), record.with_reviews(reviews)));
        }
        let row = self.row(id).await?;
        let mut record =
            RunRecord::of_row(&row).map_err(|error| RunError::Unreadable(error.to_string()))?;
        self.say_what_is_missing(std::slice::from_mut(&mut record)).await?;
        Ok((row.owner, record))
    }

    /// The run, unless its end is committed: then its result is in its row, even while it is still
    /// registered.
    pub(super) fn open(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.live(id).filter(|live| !live.stream.committed().is_over)
    }

    pub(super) async fn row(&self, id: &str) -> Result<RunRow, RunError> {
        let name = id.to_owned();
        let row = self.read(move |journal| journal.run(&name)).await?;
        row.ok_or_else(|| RunError::NotFound(id.to_owned()))
    }

    /// Ends a run with what is committed, and waits at most `patience` for that to be durable.
    ///
    /// # Errors
    /// When the run does not exist, or the journal, by which other nodes learn of it, does not
    /// answer.
    pub async fn cancel(&self, id: &str, patience: Duration) -> Result<RunRecord, RunError> {
        let live = self.live(id);
        // Also for a run that is here: its lease may be lost before it ends.
        if self.is_shared() && !self.row(id).await?.is_over {
            let name = id.to_owned();
            self.with_cluster(move |cluster| cluster.request_cancel(&name)).await?;
            if live.is_none() {
                drop(tokio::time::timeout(patience, self.ended_elsewhere(id)).await);
            }
        }
        if let Some(live) = live {
            let mut committed = live.stream.watch();
            live.cancel();
            // A run that is slow to end is returned as it is.
            drop(
                tokio::time::timeout(patience, committed.wait_for(|committed| committed.is_over))
                    .await,
            );
        }
        self.get(id).await.map(|(_, record)| record)
    }

    /// Segments of a run's events after `seq`, from the journal.
    pub(super) async fn segments(
        &self,
        id: &str,
        seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, RunError> {
        let id = id.to_owned();
        self.read(move |journal| journal.segments(&id, seq, bytes)).await
    }
}

/// The part of results that does not depend on the outcome.
pub(super) fn context_of(spec: &RunSpec, basis: Basis) -> RunContext {
    spec.context(basis)
}
