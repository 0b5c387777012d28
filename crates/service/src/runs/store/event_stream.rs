//! The events of one run on their way into the journal and out of it to watchers. No event is
//! visible before it is durable.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tracing::Span;

use super::backpressure::Backpressure;
use crate::runs::progress::Progress;
use prime_journal::{Head, Message, Segment, Snapshot};
use prime_protocol::RunSnapshot;
use prime_report::TraceLine;
use prime_runtime::Wake;

/// Maximum bytes of one run's events that may wait for the journal.
const RUN_BYTES_MAX: usize = 256 << 10;
/// A snapshot is due after at least this many events since the last one, and after a quarter more
/// than that one covers.
const SNAPSHOT_EVENTS: u64 = 1 << 14;
/// Bytes of committed events kept in memory for watchers.
const TAIL_BYTES_MAX: usize = 128 << 10;

/// Changes of a run's row that are committed with its events.
#[derive(Clone, Debug)]
pub struct RowUpdate {
    pub updated_ms: u64,
    pub status: String,
    /// True if the run ends with these events.
    pub is_over: bool,
    pub resumed: u32,
    pub summary: String,
    /// Messages about the end.
    pub messages: Vec<Message>,
}

/// The data that waits for the next commit.
#[derive(Default)]
pub struct Pending {
    pub body: Vec<u8>,
    pub count: u32,

    /// The events that need review, by their place in `body`, from 1.
    pub flagged: Vec<u32>,
    /// Counts over all events, those in `body` included.
    pub progress: Progress,

    pub update: Option<RowUpdate>,
    /// Messages that tell of no event.
    pub messages: Vec<Message>,
    pub snapshot: Option<Snapshot>,
    pub acks: Vec<oneshot::Sender<()>>,

    /// The stream is in the writer's queue.
    is_announced: bool,
    /// Why the journal refused a write of this run; nothing is accepted until
    /// [`EventStream::reopen`].
    refusal: Option<String>,
}

/// The body of a snapshot.
#[derive(Serialize, Deserialize)]
pub struct SavedRun {
    pub progress: Progress,
    pub run: RunSnapshot,
}

/// The durable part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The number of the last durable event, and the hash chain up to it.
    pub head: Head,
    /// Counts over the durable events.
    pub progress: Progress,
    /// True if the run's end is durable.
    pub is_over: bool,
    /// The journal refused a write of this run, or its lease is lost: it ends in this process.
    pub is_refused: bool,
}

/// The last committed segments of a run.
#[derive(Default)]
struct Tail {
    segments: VecDeque<Arc<Segment>>,
    bytes: usize,
}

/// A buffer whose writes fail when it would grow beyond a limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl std::io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes the messages about what a commit makes durable: from the numbers of the events that it
/// flags, and the counts before and after it.
pub type Notify = Box<dyn Fn(&[u64], &Progress, &Progress) -> Vec<Message> + Send + Sync>;

/// Queues a stream for the next commit.
pub type Announce = Arc<dyn Fn(Arc<EventStream>) + Send + Sync>;

/// The events of a run: appended by its observer, committed by the writer, read by watchers.
pub struct EventStream {
    pub id: String,
    backpressure: Arc<Backpressure>,
    announce: Announce,
    pending: Mutex<Pending>,
    /// Bytes of its events that wait for the journal.
    own_bytes: AtomicUsize,
    /// Number of the last event, durable or not.
    appended: AtomicU64,
    /// Number of the last event that a snapshot covers.
    saved: AtomicU64,
    /// Another node executes the run: nothing is accepted any more. Set while `pending` is locked.
    is_abandoned: AtomicBool,
    committed: watch::Sender<Committed>,
    tail: Mutex<Tail>,
    /// The run's span, until the run is over; `None` if spans are not exported.
    span: Mutex<Option<Span>>,
    notify: OnceLock<Notify>,
}

impl EventStream {
    /// The stream of a run whose last durable event is `head`.
    pub fn new(
        id: String,
        head: Head,
        progress: Progress,
        backpressure: Arc<Backpressure>,
        announce: Announce,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            backpressure,
            announce,
            pending: Mutex::new(Pending { progress: progress.clone(), ..Pending::default() }),
            own_bytes: AtomicUsize::new(0),
            appended: head.seq.into(),
            saved: head.seq.into(),
            is_abandoned: AtomicBool::new(false),
            committed: watch::Sender::new(Committed {
                head,
                progress,
                is_over: false,
                is_refused: false,
            }),
            tail: Mutex::default(),
            span: Mutex::default(),
            notify: OnceLock::new(),
        })
    }

    pub fn committed(&self) -> Committed {
        self.committed.borrow().clone()
    }

    /// The counts over all events, durable or not.
    pub fn uncommitted_progress(&self) -> Progress {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).progress.clone()
    }

    /// Lets commits write messages about what they make durable. Only the first call has an effect.
    pub fn notify_with(&self, notify: Notify) {
        drop(self.notify.set(notify));
    }

    /// The messages of a commit.
    pub fn messages(&self, flagged: &[u64], before: &Progress, after: &Progress) -> Vec<Message> {
        self.notify.get().map_or_else(Vec::new, |notify| notify(flagged, before, after))
    }

    /// Sets the counts over the durable events, once they are replayed.
    pub fn replayed(self: &Arc<Self>, progress: Progress) {
        self.committed.send_modify(|committed| committed.progress.clone_from(&progress));
        self.append_raw(&[], 0, &[], progress);
    }

    /// Ties commits to the run's span.
    pub fn attach(&self, span: &Span) {
        span.record("run", self.id.as_str());
        *self.span.lock().unwrap_or_else(PoisonError::into_inner) = Some(span.clone());
    }

    pub fn watch(&self) -> watch::Receiver<Committed> {
        self.committed.subscribe()
    }

    /// Changes what is pending, and announces the stream unless it is announced already.
    fn add(self: &Arc<Self>, change: impl FnOnce(&mut Pending)) {
        if self.backpressure.is_closed() {
            return;
        }

        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.refusal.is_some() || self.is_abandoned() {
            return;
        }

        let before = pending.body.len();
        change(&mut pending);
        let grown = pending.body.len() - before;
        self.own_bytes.fetch_add(grown, Ordering::Relaxed);
        self.backpressure.add(grown);

        if !std::mem::replace(&mut pending.is_announced, true) {
            // The writer may take the stream at once, which needs the lock.
            drop(pending);
            (self.announce)(Arc::clone(self));
        }
    }

    pub fn append(self: &Arc<Self>, line: &TraceLine<'_>) {
        self.add(|pending| {
            line.write(&mut pending.body);
            pending.count += 1;
            if matches!(line, TraceLine::Step(step) if step.needs_review) {
                pending.flagged.push(pending.count);
            }
            pending.progress.see(line);
            self.appended.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Appends `count` serialised events and replaces the progress. `flagged` are the events that
    /// need review, by their place in `events`, from 1.
    pub fn append_raw(
        self: &Arc<Self>,
        events: &[u8],
        count: u32,
        flagged: &[u32],
        progress: Progress,
    ) {
        self.add(|pending| {
            pending.body.write_all(events).expect("invariant: writing to memory succeeds");
            pending.flagged.extend(flagged.iter().map(|place| pending.count + place));
            pending.count += count;
            pending.progress = progress;
            self.appended.fetch_add(count.into(), Ordering::Relaxed);
        });
    }

    /// Number of the last event, durable or not.
    pub fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    pub fn wants_snapshot(&self) -> bool {
        let (appended, saved) =
            (self.appended.load(Ordering::Relaxed), self.saved.load(Ordering::Relaxed));
        appended - saved >= SNAPSHOT_EVENTS.max(saved / 4)
    }

    /// Saves the state of the run after the events so far, unless it is larger than `bytes_max`.
    pub fn save_snapshot(self: &Arc<Self>, run: RunSnapshot, bytes_max: usize) {
        let seq = self.appended.load(Ordering::Relaxed);
        // This holds even if it turns out too large: the next one would be too, and serialising it
        // costs time.
        self.saved.store(seq, Ordering::Relaxed);
        self.add(|pending| {
            let saved = SavedRun { progress: pending.progress.clone(), run };
            let mut body = BoundedBuffer { bytes: Vec::new(), bytes_max };
            if serde_json::to_writer(&mut body, &saved).is_ok() {
                pending.snapshot = Some(Snapshot { seq, body: body.bytes });
            } else {
                tracing::warn!(run = %self.id, seq, bytes_max, "no snapshot of a large state: resuming takes longer");
            }
        });
    }

    /// Updates the run's row after the events so far. The receiver resolves when all of that is
    /// durable.
    pub fn update(self: &Arc<Self>, update: RowUpdate) -> oneshot::Receiver<()> {
        let (ack, acked) = oneshot::channel();
        self.add(|pending| {
            pending.update = Some(update);
            pending.acks.push(ack);
        });
        acked
    }

    /// Writes messages that tell of no event with the next commit.
    pub fn tell(self: &Arc<Self>, messages: Vec<Message>) {
        self.add(|pending| pending.messages.extend(messages));
    }

    /// True if the run must wait for the journal.
    pub fn is_behind(&self) -> bool {
        self.own_bytes.load(Ordering::Relaxed) > RUN_BYTES_MAX || self.backpressure.is_exceeded()
    }

    /// Calls `wake` once the run no longer has to wait.
    pub fn wake_when_free(&self, wake: Wake) {
        self.backpressure.wake_after_commit(wake, || self.is_behind());
    }

    /// Takes everything pending, for the writer.
    pub fn take(&self) -> Pending {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, refusal) = (pending.progress.clone(), pending.refusal.clone());
        let kept = Pending { progress, refusal, ..Pending::default() };
        let taken = std::mem::replace(&mut *pending, kept);
        self.own_bytes.fetch_sub(taken.body.len(), Ordering::Relaxed);
        self.backpressure.remove(taken.body.len());

        taken
    }

    /// Records that the journal refused what the writer took last, for good. What was not committed
    /// is dropped, and the head stays, so that the run can be ended after it.
    pub fn refuse(&self, reason: &str) {
        self.drop_pending(Some(reason), false);
    }

    /// Records that the run's lease is lost: what is not committed is dropped, and nothing more is
    /// accepted. Execution ends without a result, because another node continues from the last
    /// committed event.
    pub fn abandon(&self) {
        self.drop_pending(None, true);
    }

    fn drop_pending(&self, refusal: Option<&str>, is_abandoned: bool) {
        let committed = self.committed();

        // This is done under the lock, so that nothing is added between the check in `add` and
        // this.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if is_abandoned {
            self.is_abandoned.store(true, Ordering::Release);
        }

        self.own_bytes.fetch_sub(pending.body.len(), Ordering::Relaxed);
        self.backpressure.remove(pending.body.len());
        self.appended.store(committed.head.seq, Ordering::Relaxed);

        // The stream may be in the writer's queue; the writer then finds nothing to write.
        let is_announced = pending.is_announced;
        let refusal = refusal.map(str::to_owned);
        *pending =
            Pending { progress: committed.progress, is_announced, refusal, ..Pending::default() };
        drop(pending);
        // This comes after the lock, because the woken tasks append the run's end.
        self.committed.send_modify(|committed| committed.is_refused = true);
    }

    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Accepts writes again after a refusal, for the run's end; returns the reason of the refusal.
    pub fn reopen(&self) -> Option<String> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).refusal.take()
    }

    /// Resolves when the journal has refused a write of this run, or the run is abandoned.
    pub async fn refused(&self) {
        let mut committed = self.watch();
        if committed.wait_for(|committed| committed.is_refused).await.is_err() {
            // The stream is gone, so that nothing can refuse it.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the events up to `seq` are durable.
    ///
    /// # Errors
    /// The journal refused them, or the process ends.
    pub async fn durable(&self, seq: u64) -> Result<(), ()> {
        let mut committed = self.watch();
        let reached =
            committed.wait_for(|committed| committed.head.seq >= seq || committed.is_refused).await;
        reached.map_err(|_| ())?;
        // A refusal may have come after the events had been committed.
        if self.committed().head.seq >= seq { Ok(()) } else { Err(()) }
    }

    /// Makes a commit visible, for the writer.
    pub fn publish(&self, segment: Option<Segment>, committed: Committed) {
        if let Some(segment) = segment {
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.bytes += segment.body.len();
            tail.segments.push_back(Arc::new(segment));
            while tail.bytes > TAIL_BYTES_MAX {
                let Some(oldest) = tail.segments.pop_front() else { break };
                tail.bytes -= oldest.body.len();
            }
        }

        let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parent) = span.as_ref() {
            tracing::debug!(parent: parent, seq = committed.head.seq, "committed");
        }
        if committed.is_over {
            *span = None;
        }

        drop(span);
        self.committed.send_modify(|current| {
            // The run may have been abandoned since the commit began.
            let is_refused = current.is_refused || committed.is_refused;
            *current = Committed { is_refused, ..committed };
        });
    }

    /// The segment in memory that holds the event after `seq`; `None` if it must be read from the
    /// journal.
    pub fn cached_segment(&self, seq: u64) -> Option<Arc<Segment>> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tail.segments.partition_point(|segment| segment.last_seq() <= seq);
        tail.segments.get(at).filter(|segment| segment.first_seq <= seq + 1).map(Arc::clone)
    }
}
