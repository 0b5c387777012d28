//! The one thread that writes the journal. It gathers pending writes into one commit (group commit)
//! and acknowledges them only afterwards. While the journal cannot be written, open runs wait, new
//! ones are refused, and the thread retries. After a commit, and when it is idle, it lets the
//! journal do the work that commits put off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::backpressure::Backpressure;
use super::batch::{Batch, CommitSize, NotAccepted, Reply};
use super::event_stream::{Announce, EventStream};
use super::imports::Imports;
use crate::runs::search::changed::Changed;
use prime_journal::{IdempotencyKey, Journal, JournalError, Review, RunRow, Write};

/// Time between two attempts while the journal cannot be written.
const RETRY: Duration = Duration::from_millis(200);
/// Time without a command after which the journal folds everything that commits put off.
const IDLE: Duration = Duration::from_millis(500);
/// Maximum number of commands of one commit.
const COMMANDS_MAX: usize = 4_096;

/// Bytes of events and snapshots after which a commit takes no further run, because every caller of
/// the next commit waits for this one first.
const COMMIT_BYTES: usize = 2 << 20;
/// The same when a caller already waits for this commit.
const URGENT_BYTES: usize = 256 << 10;

/// How long after `close` a further commit may begin. Events that are not written by then are
/// computed again by the next process, like all uncommitted ones.
const FINISH: Duration = Duration::from_secs(1);
/// Exit code when the disk failed: `EX_IOERR`.
const DISK_FAILED: i32 = 74;

enum Command {
    /// Accepts a run. The reply comes when it is durable.
    Accept { row: Box<RunRow>, key: Option<IdempotencyKey>, reply: Reply },
    /// Adds a review of a flagged event. The reply comes when it is durable.
    Review { id: String, seq: u64, review: Review, reply: Reply },
    /// Adds a run that is over. The reply comes when it is durable.
    Import { writes: Vec<Write>, reply: Reply },
    /// A stream has pending events.
    Stream(Arc<EventStream>),
    /// Tests whether the journal can be written.
    Probe(Reply),
    /// Replies when no commit is under way.
    Settle(std::sync::mpsc::Sender<()>),
    /// Writes everything pending, and ends.
    Stop,
}

/// Called after each commit, with the number of its events and its duration in seconds.
pub type Measure = Box<dyn Fn(usize, f64) + Send>;

/// The handle of the writer thread.
pub struct Writer {
    commands: Sender<Command>,
    backpressure: Arc<Backpressure>,
    announce: Announce,
    failure: Arc<Mutex<Option<String>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. `window` is how long a lone event waits for others to share its commit.
    pub fn start(
        journal: Arc<dyn Journal>,
        window: Duration,
        measure: Measure,
        changed: Arc<Changed>,
        news: watch::Sender<()>,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = crossbeam_channel::unbounded();
        let backpressure = Arc::new(Backpressure::default());
        let failure = Arc::new(Mutex::new(None));

        let thread = WriterThread {
            journal,
            inbox,
            window,
            measure,
            changed,
            news,
            backpressure: Arc::clone(&backpressure),
            failure: Arc::clone(&failure),
            streams: VecDeque::new(),
            batch: Batch::default(),
            imports: Imports::default(),
            is_folded: true,
        };

        let thread =
            std::thread::Builder::new().name("journal".to_owned()).spawn(move || thread.run())?;

        let queue = commands.clone();
        // After `close` streams accept nothing, so nothing is lost with a closed channel.
        let announce: Announce = Arc::new(move |stream| drop(queue.send(Command::Stream(stream))));
        Ok(Self { commands, backpressure, announce, failure, thread: Mutex::new(Some(thread)) })
    }

    /// What a stream needs to reach this writer.
    pub fn sink(&self) -> (Arc<Backpressure>, Announce) {
        (Arc::clone(&self.backpressure), Arc::clone(&self.announce))
    }

    /// Why the journal cannot be written at present, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn call(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), NotAccepted> {
        let (reply, answer) = oneshot::channel();
        let stopping = || NotAccepted::NotWritable("the daemon is stopping".to_owned());
        self.commands.send(command(reply)).map_err(|_| stopping())?;
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Makes a run durable.
    ///
    /// # Errors
    /// When it could not be written, or there is no room for it; it is then not accepted.
    pub async fn accept(
        &self,
        row: RunRow,
        key: Option<IdempotencyKey>,
    ) -> Result<(), NotAccepted> {
        self.call(|reply| Command::Accept { row: Box::new(row), key, reply }).await
    }

    /// Makes a review durable.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn review(&self, id: String, seq: u64, review: Review) -> Result<(), NotAccepted> {
        self.call(|reply| Command::Review { id, seq, review, reply }).await
    }

    /// Adds a run that is over, in one commit.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn import(&self, writes: Vec<Write>) -> Result<(), NotAccepted> {
        self.call(|reply| Command::Import { writes, reply }).await
    }

    /// Tests whether the journal can be written, by writing.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn probe(&self) -> Result<(), NotAccepted> {
        self.call(Command::Probe).await
    }

    /// Waits until every commit that began earlier has ended. Later ones write no run that is
    /// abandoned by now. For threads that may block.
    pub fn settle(&self) {
        let (reply, settled) = std::sync::mpsc::channel();
        if self.commands.send(Command::Settle(reply)).is_ok() {
            // A writer that has ended commits nothing.
            let _ = settled.recv();
        }
    }

    /// Accepts nothing more, writes everything pending, and ends the thread. Blocks until that is
    /// done.
    pub fn close(&self) {
        self.backpressure.close();
        drop(self.commands.send(Command::Stop));

        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was printed; the journal holds what was committed.
            drop(thread.join());
        }
    }
}

struct WriterThread {
    journal: Arc<dyn Journal>,
    inbox: Receiver<Command>,
    window: Duration,
    measure: Measure,
    changed: Arc<Changed>,
    /// Told when there are new messages.
    news: watch::Sender<()>,
    backpressure: Arc<Backpressure>,
    failure: Arc<Mutex<Option<String>>>,
    /// Streams with pending events that are not in the batch yet, first come first served.
    streams: VecDeque<Arc<EventStream>>,
    batch: Batch,
    imports: Imports,
    /// Nothing is left to fold: no commit was made since the journal was last idle.
    is_folded: bool,
}

/// Ends the process. Whether earlier pages reached the disk is unknown, so that a retry could
/// report success falsely.
pub(super) fn exit_on_disk_failure(reason: &str) -> ! {
    tracing::error!(%reason, "the journal's disk failed: exiting; everything acknowledged is durable");
    eprintln!("error: the journal's disk failed: {reason}");
    std::process::exit(DISK_FAILED);
}

/// Refuses the new runs for which a store with `open` of `most` open runs has no room: the last
/// ones, and at least one. Returns whether there was one.
fn refuse_beyond(batch: &mut Batch, open: u64, most: u64) -> bool {
    let room = usize::try_from(most.saturating_sub(open)).unwrap_or(usize::MAX);
    // At least one is refused, or the same batch would be refused again and again.
    let mut kept = room.min(batch.new_runs().saturating_sub(1));
    batch.refuse_new_runs(|_| {
        let is_kept = kept > 0;
        kept = kept.saturating_sub(1);
        (!is_kept).then_some(NotAccepted::Full { open, most })
    })
}

/// Whether a caller waits for a command.
enum Urgency {
    Now,
    Later,
    Stop,
}

impl WriterThread {
    fn run(mut self) {
        loop {
            let is_stuck = self.failure().is_some() && !self.batch.is_empty();
            // A failed batch is retried even if no command comes.
            let first = if is_stuck {
                match self.inbox.recv_timeout(RETRY) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else if !self.streams.is_empty() {
                // Streams are left over from the last commit: do not wait for a command.
                self.inbox.try_recv().ok()
            } else {
                match self.next_command() {
                    Some(command) => Some(command),
                    None => return,
                }
            };

            let is_stopping = self.gather(first);
            // While the journal cannot be written, the batch must not grow with each attempt.
            if !is_stuck || self.batch.writes.is_empty() {
                self.fill();
            }

            self.commit();
            self.is_folded &= self.imports.commit(self.journal.as_ref(), &self.changed);

            if is_stopping {
                return self.finish();
            }

            if self.failure().is_none() {
                self.fold(false);
            }
        }
    }

    /// Waits for a command; `None` when there will be no more.
    fn next_command(&mut self) -> Option<Command> {
        if !self.is_folded {
            match self.inbox.recv_timeout(IDLE) {
                Ok(command) => return Some(command),
                Err(RecvTimeoutError::Timeout) => self.fold(true),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.inbox.recv().ok()
    }

    /// Lets the journal fold what commits put off: a part of it, or all when idle. If it cannot,
    /// nothing is lost.
    fn fold(&mut self, is_idle: bool) {
        self.is_folded |= is_idle;
        match self.journal.fold(is_idle) {
            Ok(()) => {}
            Err(JournalError::DiskFailed(reason)) => exit_on_disk_failure(&reason),
            Err(error) => tracing::warn!(%error, "events stay in batches"),
        }
    }

    /// Fills the batch from the streams, as far as one commit may go.
    fn fill(&mut self) {
        let limit = if self.batch.is_urgent() { URGENT_BYTES } else { COMMIT_BYTES };
        let mut bytes = 0;
        while bytes < limit
            && let Some(stream) = self.streams.pop_front()
        {
            bytes += self.batch.take(stream);
        }
    }

    /// Writes everything pending while there is time, unless the journal cannot be written.
    fn finish(mut self) {
        let until = Instant::now() + FINISH;
        while self.failure().is_none() && !self.streams.is_empty() && Instant::now() < until {
            self.fill();
            self.commit();
        }
        if self.failure().is_none() {
            self.fold(true);
        }
    }

    fn take(&mut self, command: Command) -> Urgency {
        match command {
            Command::Accept { row, key, reply } => {
                self.batch.push_awaited(Write::Accept { row: *row, key }, reply);
                Urgency::Now
            }
            Command::Review { id, seq, review, reply } => {
                self.batch.push_awaited(Write::Review { id, seq, review }, reply);
                Urgency::Now
            }
            Command::Import { writes, reply } => {
                self.imports.push(writes, reply);
                Urgency::Now
            }
            Command::Stream(stream) => {
                self.streams.push_back(stream);
                Urgency::Later
            }
            Command::Probe(reply) => {
                self.batch.probes.push(reply);
                Urgency::Now
            }
            Command::Settle(reply) => {
                // The caller may have stopped waiting.
                let _ = reply.send(());
                Urgency::Later
            }
            Command::Stop => Urgency::Stop,
        }
    }

    /// Takes the queued commands, and waits up to `window` for more while no caller waits. Returns
    /// whether to stop.
    fn gather(&mut self, first: Option<Command>) -> bool {
        let Some(first) = first else { return false };
        // Streams left over from the last commit are enough to share a commit.
        let window = if self.streams.is_empty() { self.window } else { Duration::ZERO };
        let until = Instant::now() + window;

        let mut urgency = self.take(first);
        for _ in 0..COMMANDS_MAX {
            let next = match urgency {
                Urgency::Stop => return true,
                Urgency::Now => self.inbox.try_recv().ok(),
                Urgency::Later => {
                    let left = until.saturating_duration_since(Instant::now());
                    self.inbox.recv_timeout(left).ok()
                }
            };

            let Some(next) = next else { break };
            urgency = match (urgency, self.take(next)) {
                (_, Urgency::Stop) => return true,
                (Urgency::Now, _) | (_, Urgency::Now) => Urgency::Now,
                _ => Urgency::Later,
            };
        }

        false
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Writes the batch. A write that the journal refuses is found by halving, so that it costs
    /// the others few extra commits.
    fn commit(&mut self) {
        self.batch.drop_abandoned();
        if self.batch.is_empty() {
            return;
        }

        let mut batch = std::mem::take(&mut self.batch);
        // Committing the events of open runs does not show whether a new run can be accepted.
        let probes = batch.take_probes();
        let mut parts = vec![probes, batch];
        // A stack of batches to write, in order: halves are pushed so that the first comes off
        // first.
        while let Some(mut batch) = parts.pop() {
            if batch.is_empty() {
                continue;
            }

            let started = Instant::now();
            let result = if batch.writes.is_empty() {
                self.journal.probe()
            } else {
                self.journal.commit(&batch.writes)
            };

            match result {
                Ok(()) => self.publish(batch, started),
                Err(JournalError::DiskFailed(reason)) => exit_on_disk_failure(&reason),
                Err(error @ JournalError::NotWritable(_)) => {
                    let reason = error.to_string();
                    if self.failure().is_none() {
                        tracing::error!(%reason, "runs wait until the journal can be written");
                    }
                    // Everything is kept for the retry, in order, except for the replies that
                    // callers can get now.
                    parts.into_iter().rev().for_each(|later| batch.append(later));
                    batch.refuse(&reason);
                    self.batch = batch;
                    self.set_failure(Some(reason));
                    return;
                }
                Err(JournalError::Full { open, most }) if refuse_beyond(&mut batch, open, most) => {
                    parts.push(batch);
                }
                Err(JournalError::Refused(_)) if self.refuse_taken(&mut batch) => parts.push(batch),
                // Something in the batch is refused: the half without it is written.
                Err(error) => match batch.halves() {
                    Ok((first, second)) => parts.extend([second, first]),
                    Err(mut single) => {
                        if let JournalError::LeaseLost { .. } = error {
                            // Runs that wait for the journal must learn that the bytes are gone.
                            single.abandon(&error.to_string());
                            self.backpressure.wake();
                        } else if single.drop_snapshots() {
                            tracing::warn!(%error, "a snapshot was refused: the run is recorded without it");
                            parts.push(single);
                        } else {
                            tracing::error!(%error, "a write was refused");
                            single.give_up(&error.to_string());
                            self.backpressure.wake();
                        }
                    }
                },
            }
        }
    }

    /// Refuses the new runs whose idempotency keys were taken meanwhile, by runs of another node.
    /// After an outage there may be many, and finding each by halving would cost commits. Returns
    /// whether there was one.
    fn refuse_taken(&self, batch: &mut Batch) -> bool {
        // One failed read is enough: the others would fail as well, and cost time.
        let mut is_read = true;
        batch.refuse_new_runs(|write| {
            let Write::Accept { row, key: Some(key) } = write else { return None };
            let found = is_read.then(|| self.journal.run_of_key(&row.owner, &key.key))?;
            is_read = found.is_ok();
            let (run, _) = found.ok().flatten()?;
            Some(NotAccepted::NotWritable(format!(
                "the idempotency key of the new run {} belongs to run {run}",
                row.id
            )))
        })
    }

    fn publish(&mut self, batch: Batch, started: Instant) {
        self.is_folded = false;
        if self.failure().is_some() {
            tracing::info!("the journal can be written again");
            self.set_failure(None);
        }

        self.changed.see(&batch.writes);
        if batch.writes.iter().any(|write| matches!(write, Write::Enqueue { .. })) {
            self.news.send_replace(());
        }
        let CommitSize { events, runs, bytes } = batch.publish();
        let seconds = started.elapsed().as_secs_f64();
        tracing::debug!(events, runs, bytes, ms = seconds * 1e3, "journal_commit");
        (self.measure)(events, seconds);
        self.backpressure.wake();
    }
}
