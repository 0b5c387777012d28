//! The runs of a daemon: admission, and the way to every run, live or kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use actix::ArbiterHandle;
use dashmap::DashMap;
use tokio::sync::{oneshot, watch};

use super::live::{LiveRun, RunRecord, Status};
use super::progress::Progress;
use super::spec::RunSpec;
use super::stream::Stream;
use super::writer::Writer;
use crate::app::App;
use crate::metrics::Metrics;
use crate::report::{RunResult, Solved};
use crate::runtime::Observer;
use crate::telemetry::Telemetry;
use prime_bench::tasks::Problem;
use prime_journal::{
    ChainHash, Head, IdempotencyKey, Journal, JournalError, Query, ReviewCounts, RunRow, Segment, Size,
};
use prime_protocol::SuspendedRun;

/// Why a run could not be taken, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(
        "there is no run {0}; finished runs are removed after journal.retention_days, or when journal.retention_bytes is full"
    )]
    NotFound(String),
    #[error("{open} runs are open, and server.queue_max is {limit}: try again later")]
    Full { open: usize, limit: u32 },
    #[error("the daemon is stopping: hand the run in again in a moment")]
    Draining,
    #[error("{0}")]
    NotWritable(String),
    #[error("this Idempotency-Key was used with another request, for run {0}: take a new key for a new request")]
    KeyReused(String),
    #[error("{0}")]
    Agents(String),
    #[error("{0}")]
    Conflict(String),
    #[error("event {seq} of this run is no step that asks for a person: GET /v1/runs/{id}/reviews lists those that do")]
    NotFlagged { id: String, seq: u64 },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal holds a row that this version cannot read: {0}")]
    Unreadable(String),
}

/// A run that somebody wants.
pub struct NewRun {
    pub owner: String,
    pub key: Option<IdempotencyKey>,
    pub spec: RunSpec,
    pub problem: Arc<dyn Problem>,
}

/// A run that was accepted now, or before under the same key.
pub struct Accepted {
    pub record: RunRecord,
    pub is_new: bool,
}

/// An owner, and a key of theirs.
type KeyName = (String, String);

/// Milliseconds since 1970.
pub type Clock = fn() -> u64;

/// Puts an observer of its own before the one that records a run.
pub type ObserveWith = Box<dyn Fn(&RunSpec, Arc<dyn Observer>) -> Arc<dyn Observer> + Send + Sync>;

/// See the module.
pub struct Runs {
    app: RwLock<Arc<App>>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) writer: Writer,
    pub(super) metrics: Arc<Metrics>,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) live: DashMap<String, Arc<LiveRun>>,
    /// Accepted and not over, or being accepted.
    pub(super) open: AtomicUsize,
    /// Requests with a key, under way: the second waits for the first.
    keys: Mutex<HashMap<KeyName, Arc<tokio::sync::Mutex<()>>>>,
    draining: watch::Sender<bool>,
    pub(super) clock: Clock,
    pub(super) observe_with: OnceLock<ObserveWith>,
    /// Where runs are followed to their ends; not a thread of the server, whose threads end before the process does.
    pub(super) home: ArbiterHandle,
}

/// A place among the open runs; given back when dropped.
pub(super) struct Place(Arc<Runs>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A name that tells when it was given, and nothing else.
fn new_id(now_ms: u64) -> String {
    format!("run_{:011x}{:016x}", now_ms & 0xfff_ffff_ffff, rand::random::<u64>())
}

impl Runs {
    /// Opens for business. Call [`Runs::resume`] next. Must be called within an actix system.
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
            journal,
            writer,
            metrics,
            telemetry,
            live: DashMap::new(),
            open: AtomicUsize::new(0),
            keys: Mutex::default(),
            draining: watch::Sender::new(false),
            clock,
            observe_with: OnceLock::new(),
            home: actix::Arbiter::current(),
        }))
    }

    /// What new runs are carried out with.
    pub fn app(&self) -> Arc<App> {
        Arc::clone(&self.app.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on, new runs are carried out with this; those under way keep what they began with.
    pub fn replace(&self, app: App) {
        *self.app.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(app);
    }

    /// Lets somebody see the events of all runs to come, on the cells' threads. Only the first who asks does.
    pub fn observe_with(&self, observe: ObserveWith) {
        drop(self.observe_with.set(observe));
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What the journal holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn journal_size(&self) -> Result<Size, RunError> {
        self.read(|journal| journal.size()).await
    }

    /// Runs that are accepted and not over.
    pub fn open_runs(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Why the journal cannot be written at present, if so.
    pub fn journal_failure(&self) -> Option<String> {
        self.writer.failure()
    }

    /// Whether a run handed in now could be kept: writes something.
    ///
    /// # Errors
    /// Why not.
    pub async fn probe(&self) -> Result<(), String> {
        self.writer.probe().await
    }

    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Tells when draining begins.
    pub(super) fn drained(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Refuses new runs from now on, and ends those who watch.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Writes what waits, and takes nothing more: open runs are parked where they are. Blocks until it is done.
    pub fn park(&self) {
        self.drain();
        self.writer.close();
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown();
        }
    }

    /// Whether a run handed in now would have a place, so that one that has none is refused before anything is computed
    /// for it. [`Runs::accept`] has the last word.
    ///
    /// # Errors
    /// `Full` or `Draining`.
    pub fn has_room(&self) -> Result<(), RunError> {
        let (open, limit) = (self.open_runs(), self.app().settings().server.queue_max);
        if self.is_draining() {
            return Err(RunError::Draining);
        }
        if open < limit as usize { Ok(()) } else { Err(RunError::Full { open, limit }) }
    }

    pub(super) fn place(self: &Arc<Self>) -> Result<Place, RunError> {
        let limit = self.app().settings().server.queue_max;
        let take = |open: usize| (open < limit as usize).then_some(open + 1);
        match self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(_) => Ok(Place(Arc::clone(self))),
            Err(open) => Err(RunError::Full { open, limit }),
        }
    }

    /// A place for a run that was accepted before: there is always one.
    pub(super) fn place_of_old(self: &Arc<Self>) -> Place {
        self.open.fetch_add(1, Ordering::AcqRel);
        Place(Arc::clone(self))
    }

    /// Takes a run: when this returns, it is durable and under way.
    ///
    /// # Errors
    /// [`RunError`]; then there is no such run.
    pub async fn accept(self: &Arc<Self>, new: NewRun) -> Result<Accepted, RunError> {
        let runs = Arc::clone(self);
        self.whole(async move { runs.take(new).await }).await
    }

    /// Does something to its end, even when the client that asked for it is gone: what is durable must get under way.
    pub(super) async fn whole<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RunError>> + Send + 'static,
    ) -> Result<T, RunError> {
        let (reply, result) = oneshot::channel();
        self.home.spawn(async move {
            // Whoever asked may be gone.
            drop(reply.send(work.await));
        });
        result.await.unwrap_or(Err(RunError::Draining))
    }

    async fn take(self: &Arc<Self>, new: NewRun) -> Result<Accepted, RunError> {
        let Some(key) = new.key.clone() else {
            return self.accept_new(new, None).await.map(|record| Accepted { record, is_new: true });
        };
        let name = (new.owner.clone(), key.key.clone());
        let turn =
            Arc::clone(self.keys.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_default());
        let accepted = {
            let _turn = turn.lock().await;
            self.accept_keyed(new, key).await
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // Ours and the map's: nobody else waits for this key.
        if Arc::strong_count(&turn) == 2 {
            keys.remove(&name);
        }
        accepted
    }

    async fn accept_keyed(self: &Arc<Self>, new: NewRun, key: IdempotencyKey) -> Result<Accepted, RunError> {
        let (owner, text) = (new.owner.clone(), key.key.clone());
        let known = self.read(move |journal| journal.run_of_key(&owner, &text)).await?;
        match known {
            Some((id, fingerprint)) if fingerprint == key.fingerprint => {
                Ok(Accepted { record: self.get(&id).await?.1, is_new: false })
            }
            Some((id, _)) => Err(RunError::KeyReused(id)),
            None => self.accept_new(new, Some(key)).await.map(|record| Accepted { record, is_new: true }),
        }
    }

    async fn accept_new(self: &Arc<Self>, new: NewRun, key: Option<IdempotencyKey>) -> Result<RunRecord, RunError> {
        if self.is_draining() {
            return Err(RunError::Draining);
        }
        let place = self.place()?;
        let (live, row) = self.prepare(&new.owner, new.spec)?;
        self.writer.accept(row, key).await.map_err(RunError::NotWritable)?;
        let record = live.record();
        self.launch(live, new.problem, None, place);
        Ok(record)
    }

    /// A run's row and its live side, neither of them known to anybody yet.
    pub(super) fn prepare(&self, owner: &str, spec: RunSpec) -> Result<(Arc<LiveRun>, RunRow), RunError> {
        let runtime = self.app().runtime_of(&spec.overrides).map_err(|error| RunError::Agents(error.to_string()))?;
        let solved = solved(&spec, runtime.agents().kinds());
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
            summary: serde_json::to_string(&RunResult::open(&solved)).expect("invariant: results serialise"),
            split: spec.split.map(|arm| arm.name().to_owned()),
            reviews: ReviewCounts::default(),
            head,
        };
        let stream = self.stream(&row, Progress::default());
        Ok((Arc::new(LiveRun::new(&row, spec, solved, stream)), row))
    }

    pub(super) fn stream(&self, row: &RunRow, progress: Progress) -> Arc<Stream> {
        Stream::new(row.id.clone(), row.head, progress, Arc::clone(self.writer.shared()), self.writer.orders())
    }

    /// Puts a durable run under way.
    pub(super) fn launch(
        self: &Arc<Self>,
        live: Arc<LiveRun>,
        problem: Arc<dyn Problem>,
        resting: Option<Box<SuspendedRun>>,
        place: Place,
    ) {
        self.live.insert(live.stream.id.clone(), Arc::clone(&live));
        self.home.spawn(super::follow::follow(Arc::clone(self), live, problem, resting, place));
    }

    /// Reads the journal beside the threads that serve.
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
    /// When there is none, or the journal cannot be read.
    pub async fn get(&self, id: &str) -> Result<(String, RunRecord), RunError> {
        // A run that is over has its result in its row, also while it is still at hand.
        if let Some(live) = self.live(id).filter(|live| !live.stream.committed().is_over) {
            let record = live.record();
            let committed = live.stream.committed();
            // Right after a restart nothing has been counted of what the journal has.
            let is_counted = committed.head.seq == 0 || committed.progress.proposals > 0;
            if is_counted && committed.progress.reviews_needed == 0 {
                return Ok((live.owner.clone(), record));
            }
            // What was said of its steps is in the journal only.
            let reviews = self.row(id).await?.reviews;
            return Ok((live.owner.clone(), record.reviewed(reviews)));
        }
        let row = self.row(id).await?;
        let record = RunRecord::of_row(&row).map_err(|error| RunError::Unreadable(error.to_string()))?;
        Ok((row.owner, record))
    }

    pub(super) async fn row(&self, id: &str) -> Result<RunRow, RunError> {
        let name = id.to_owned();
        let row = self.read(move |journal| journal.run(&name)).await?;
        row.ok_or_else(|| RunError::NotFound(id.to_owned()))
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn list(&self, query: Query) -> Result<Vec<RunRecord>, RunError> {
        let rows = self.read(move |journal| journal.list(&query)).await?;
        let record = |row: &RunRow| match self.live(&row.id) {
            Some(live) => Ok(live.record().reviewed(row.reviews)),
            None => RunRecord::of_row(row).map_err(|error| RunError::Unreadable(error.to_string())),
        };
        rows.iter().map(record).collect()
    }

    /// Ends a run with what is committed, and waits until that is durable, for at most `patience`.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn cancel(&self, id: &str, patience: Duration) -> Result<RunRecord, RunError> {
        if let Some(live) = self.live(id) {
            let mut committed = live.stream.watch();
            live.cancel();
            // A run that is slow to end is shown as it is.
            drop(tokio::time::timeout(patience, committed.wait_for(|committed| committed.is_over)).await);
        }
        self.get(id).await.map(|(_, record)| record)
    }

    /// Segments of a run's events after `seq`; for runs that are not at hand.
    pub(super) async fn segments(&self, id: &str, seq: u64, bytes: usize) -> Result<Vec<Segment>, RunError> {
        let id = id.to_owned();
        self.read(move |journal| journal.segments(&id, seq, bytes)).await
    }
}

/// What results say beside the outcome.
pub(super) fn solved(spec: &RunSpec, kinds: prime_bench::tasks::Kinds) -> Solved {
    Solved {
        task: spec.task.clone(),
        instance: spec.instance.clone(),
        agents: spec.agents.clone(),
        notes: spec.notes.clone(),
        kinds,
        config_hash: spec.config_hash.clone(),
        strategy: spec.plan.strategy,
        seed: spec.sampling.seed,
        split: spec.split,
    }
}
