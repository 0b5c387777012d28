//! The journal of this process: everything about runs that is durable is read and written here.
//!
//! - Out of it: rows, specs and events here, `reviews` of flagged steps, and what `replay` rebuilds
//!   from the events.
//! - Into it: a run appends to its `event_stream`; the one thread of `writer` commits the pending
//!   events of many streams as one `batch`; `backpressure` makes runs wait for it.

pub(super) mod backpressure;
pub(super) mod batch;
pub(super) mod event_stream;
mod imports;
pub(super) mod replay;
pub(super) mod reviews;
pub(super) mod writer;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::error::RunError;
use super::progress::Progress;
use super::search::changed::Changed;
use super::spec::RunSpec;
use event_stream::EventStream;
use prime_agent_set::task_program::TaskPrograms;
use prime_journal::{IdempotencyKey, Journal, JournalError, RunRow, Segment, Size, Write};
use writer::{Measure, Writer};

/// Milliseconds since 1970.
pub type Clock = fn() -> u64;

/// Reads the journal, and writes it through its one writer.
pub struct RunStore {
    journal: Arc<dyn Journal>,
    writer: Writer,
    /// The clock of all times in rows and reviews.
    clock: Clock,
    /// The tasks that are programs, to replay their runs.
    tasks: TaskPrograms,
    /// The runs that changed since they were noted for searches.
    changed: Arc<Changed>,
    /// Changes when messages may have become due.
    news: watch::Sender<()>,
}

impl RunStore {
    /// Starts the writer's thread. `window` is how long a lone event waits for others to share its
    /// commit; `measure` is called for each commit.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(
        journal: Arc<dyn Journal>,
        clock: Clock,
        window: Duration,
        measure: Measure,
        tasks: TaskPrograms,
    ) -> std::io::Result<Self> {
        let changed = Arc::<Changed>::default();
        let news = watch::Sender::new(());
        let writer = Writer::start(
            Arc::clone(&journal),
            window,
            measure,
            Arc::clone(&changed),
            news.clone(),
        )?;
        Ok(Self { journal, writer, clock, tasks, changed, news })
    }

    /// The time, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// The clock of all times in rows.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The runs that the search index has to note again.
    pub(super) fn changed(&self) -> &Changed {
        &self.changed
    }

    /// Changes when messages may have become due.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Says that messages may have become due.
    pub(super) fn tell_news(&self) {
        self.news.send_replace(());
    }

    /// The tasks that are programs.
    pub(super) fn tasks(&self) -> &TaskPrograms {
        &self.tasks
    }

    /// The journal, for threads that may block; others use [`RunStore::read`].
    pub(super) fn journal(&self) -> &dyn Journal {
        self.journal.as_ref()
    }

    /// Reads the journal on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, RunError> {
        let journal = Arc::clone(&self.journal);
        let result = tokio::task::spawn_blocking(move || read(journal.as_ref())).await;

        // A blocking task is dropped only when the process ends.
        Ok(result.map_err(|_| RunError::Draining)??)
    }

    /// A run's row.
    ///
    /// # Errors
    /// When there is no such run, or the journal cannot be read.
    pub async fn row(&self, id: &str) -> Result<RunRow, RunError> {
        let name = id.to_owned();
        let row = self.read(move |journal| journal.run(&name)).await?;
        row.ok_or_else(|| RunError::NotFound(id.to_owned()))
    }

    /// Everything that a run was accepted with.
    ///
    /// # Errors
    /// When the run does not exist, or another version wrote its row.
    pub async fn spec(&self, id: &str) -> Result<RunSpec, RunError> {
        let row = self.row(id).await?;
        serde_json::from_str(&row.spec).map_err(|error| RunError::Unreadable(error.to_string()))
    }

    /// A run's spec, and the tasks with which its steps can be computed on behalf of its owner.
    ///
    /// # Errors
    /// When the run does not exist, or this version cannot read it.
    pub(super) async fn spec_and_tasks(
        &self,
        id: &str,
    ) -> Result<(RunSpec, TaskPrograms), RunError> {
        let row = self.row(id).await?;
        let spec = serde_json::from_str(&row.spec)
            .map_err(|error| RunError::Unreadable(error.to_string()))?;
        Ok((spec, self.tasks.asked_by(&row.owner)))
    }

    /// Segments of a run's events after `seq`, about `bytes` of them.
    pub(super) async fn segments(
        &self,
        id: &str,
        seq: u64,
        bytes: usize,
    ) -> Result<Vec<Segment>, RunError> {
        let id = id.to_owned();
        self.read(move |journal| journal.segments(&id, seq, bytes)).await
    }

    /// The size of the journal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn size(&self) -> Result<Size, RunError> {
        self.read(|journal| journal.size()).await
    }

    /// Why the journal cannot be written at present, if so.
    pub fn failure(&self) -> Option<String> {
        self.writer.failure()
    }

    /// Tests whether the journal can be written, by writing.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn probe(&self) -> Result<(), String> {
        self.writer.probe().await.map_err(|reason| RunError::from(reason).to_string())
    }

    /// Makes a new run durable.
    ///
    /// # Errors
    /// When it could not be written, or the store has no room for it; then it does not exist.
    pub(super) async fn accept(
        &self,
        row: RunRow,
        key: Option<IdempotencyKey>,
    ) -> Result<(), RunError> {
        Ok(self.writer.accept(row, key).await?)
    }

    /// Adds a run that is over, with its events, in one commit.
    ///
    /// # Errors
    /// When it could not be written; then nothing of it was.
    pub(super) async fn import(&self, writes: Vec<Write>) -> Result<(), RunError> {
        Ok(self.writer.import(writes).await?)
    }

    /// The stream of a run's events into the journal, after those that its row counts.
    pub(super) fn stream(&self, row: &RunRow, progress: Progress) -> Arc<EventStream> {
        let (backpressure, announce) = self.writer.sink();
        EventStream::new(row.id.clone(), row.head, progress, backpressure, announce)
    }

    /// Waits until every commit that began earlier has ended. Later ones write no run that is
    /// abandoned by now. For threads that may block.
    pub(super) fn settle(&self) {
        self.writer.settle();
    }

    /// Accepts nothing more, and writes everything pending. Blocks until that is done.
    pub(super) fn close(&self) {
        self.writer.close();
    }
}
