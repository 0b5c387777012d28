//! The events of one run on their way into the journal, and out of it to whoever watches. An event is seen by nobody
//! before it is durable.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tracing::Span;

use super::progress::Progress;
use super::writer::Order;
use crate::report::TraceLine;
use crate::runtime::{Event, Observer, Wake};
use prime_journal::{Head, Segment, Snapshot};
use prime_protocol::RunSnapshot;

/// Bytes of one run's events that may wait for the journal; beyond, the run waits too.
const RUN_BYTES_MAX: usize = 256 << 10;
/// The same over all runs.
const ALL_BYTES_MAX: usize = 64 << 20;
/// A run is saved when it has this many events more than when it was last saved, and a quarter more.
const SAVE_EVENTS: u64 = 1 << 14;
/// Bytes of committed events that a run keeps at hand for those who watch.
const TAIL_BYTES_MAX: usize = 128 << 10;

/// What all streams share with the thread that writes.
#[derive(Default)]
pub struct Shared {
    /// Bytes of events that wait for the journal.
    pub waiting_bytes: AtomicUsize,
    /// Nothing is taken any more: the process is about to end.
    pub is_closed: AtomicBool,
    wakes: Mutex<Vec<Wake>>,
}

impl Shared {
    /// Lets the runs go on that had to wait.
    pub fn wake_all(&self) {
        let wakes = std::mem::take(&mut *self.wakes.lock().unwrap_or_else(PoisonError::into_inner));
        wakes.into_iter().for_each(|wake| wake());
    }
}

/// Changes of a run's row that are committed with its events.
#[derive(Clone, Debug)]
pub struct RowUpdate {
    pub updated_ms: u64,
    pub status: String,
    pub is_over: bool,
    pub resumed: u32,
    pub summary: String,
}

/// What waits for the journal.
#[derive(Default)]
pub struct Pending {
    pub body: Vec<u8>,
    pub count: u32,
    /// Which of them ask for a person, from 1.
    pub flagged: Vec<u32>,
    pub progress: Progress,
    pub update: Option<RowUpdate>,
    pub snapshot: Option<Snapshot>,
    pub acks: Vec<oneshot::Sender<()>>,
    /// The writer knows that there is something.
    is_announced: bool,
}

/// What a snapshot holds.
#[derive(Serialize, Deserialize)]
pub struct SavedRun {
    pub progress: Progress,
    pub run: RunSnapshot,
}

/// What is durable of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub head: Head,
    pub progress: Progress,
    pub is_over: bool,
}

/// The last committed segments of a run.
#[derive(Default)]
struct Tail {
    segments: VecDeque<Arc<Segment>>,
    bytes: usize,
}

/// See the module.
pub struct Stream {
    pub id: String,
    shared: Arc<Shared>,
    orders: Sender<Order>,
    pending: Mutex<Pending>,
    own_bytes: AtomicUsize,
    /// Number of the last event that was appended, and of the one that was when the run was last saved.
    appended: AtomicU64,
    saved: AtomicU64,
    committed: watch::Sender<Committed>,
    tail: Mutex<Tail>,
    /// The run's span until the run is over, if somebody listens to spans.
    span: Mutex<Option<Span>>,
}

impl Stream {
    /// The stream of a run whose last durable event is `head`.
    pub fn new(id: String, head: Head, progress: Progress, shared: Arc<Shared>, orders: Sender<Order>) -> Arc<Self> {
        Arc::new(Self {
            id,
            shared,
            orders,
            pending: Mutex::new(Pending { progress, ..Pending::default() }),
            own_bytes: AtomicUsize::new(0),
            appended: head.seq.into(),
            saved: head.seq.into(),
            committed: watch::Sender::new(Committed { head, progress, is_over: false }),
            tail: Mutex::default(),
            span: Mutex::default(),
        })
    }

    pub fn committed(&self) -> Committed {
        *self.committed.borrow()
    }

    /// The counts over all events, durable or not.
    pub fn waiting_progress(&self) -> Progress {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).progress
    }

    pub fn watch(&self) -> watch::Receiver<Committed> {
        self.committed.subscribe()
    }

    /// Adds to what waits, and tells the writer if it does not know yet.
    fn add(self: &Arc<Self>, change: impl FnOnce(&mut Pending)) {
        if self.shared.is_closed.load(Ordering::Acquire) {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pending.body.len();
        change(&mut pending);
        let grown = pending.body.len() - before;
        self.own_bytes.fetch_add(grown, Ordering::Relaxed);
        self.shared.waiting_bytes.fetch_add(grown, Ordering::Relaxed);
        if !std::mem::replace(&mut pending.is_announced, true) {
            drop(pending);
            // The writer lives as long as the process serves; after that nothing is taken any more.
            drop(self.orders.send(Order::Stream(Arc::clone(self))));
        }
    }

    /// Appends an event.
    pub fn append(self: &Arc<Self>, line: &TraceLine<'_>) {
        self.add(|pending| {
            serde_json::to_writer(&mut pending.body, line).expect("invariant: events serialise");
            pending.body.push(b'\n');
            pending.count += 1;
            if matches!(line, TraceLine::Step(step) if step.needs_review) {
                pending.flagged.push(pending.count);
            }
            pending.progress.see(line);
        });
        self.appended.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends events as they were written before, and what they come to. `flagged` are those that ask for a person, by
    /// their places in `events`, from 1.
    pub fn append_raw(self: &Arc<Self>, events: &[u8], count: u32, flagged: &[u32], progress: Progress) {
        self.add(|pending| {
            pending.body.write_all(events).expect("invariant: writing to memory succeeds");
            pending.flagged.extend(flagged.iter().map(|place| pending.count + place));
            pending.count += count;
            pending.progress = progress;
        });
        self.appended.fetch_add(count.into(), Ordering::Relaxed);
    }

    /// Whether it has gone on far enough to be saved again.
    pub fn wants_snapshot(&self) -> bool {
        let (appended, saved) = (self.appended.load(Ordering::Relaxed), self.saved.load(Ordering::Relaxed));
        appended - saved >= SAVE_EVENTS.max(saved / 4)
    }

    /// Keeps what the events so far made of the run.
    pub fn save(self: &Arc<Self>, run: RunSnapshot) {
        let seq = self.appended.load(Ordering::Relaxed);
        self.saved.store(seq, Ordering::Relaxed);
        self.add(|pending| {
            let saved = SavedRun { progress: pending.progress, run };
            let body = serde_json::to_vec(&saved).expect("invariant: saved runs serialise");
            pending.snapshot = Some(Snapshot { seq, body });
        });
    }

    /// Changes the run's row after the events so far; the receiver hears when all of it is durable.
    pub fn update(self: &Arc<Self>, update: RowUpdate) -> oneshot::Receiver<()> {
        let (ack, acked) = oneshot::channel();
        self.add(|pending| {
            pending.update = Some(update);
            pending.acks.push(ack);
        });
        acked
    }

    /// Ties commits to the run's span.
    pub fn attach(&self, span: &Span) {
        span.record("run", self.id.as_str());
        *self.span.lock().unwrap_or_else(PoisonError::into_inner) = Some(span.clone());
    }

    /// For the writer: takes what waits.
    pub fn take(&self) -> Pending {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = pending.progress;
        let taken = std::mem::replace(&mut *pending, Pending { progress, ..Pending::default() });
        self.own_bytes.fetch_sub(taken.body.len(), Ordering::Relaxed);
        self.shared.waiting_bytes.fetch_sub(taken.body.len(), Ordering::Relaxed);
        taken
    }

    /// For the writer: this much is durable now.
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
        self.committed.send_replace(committed);
    }

    /// The segment at hand that holds the event after `seq`; `None` where it must be read from the journal.
    pub fn at_hand(&self, seq: u64) -> Option<Arc<Segment>> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tail.segments.partition_point(|segment| segment.last_seq() <= seq);
        tail.segments.get(at).filter(|segment| segment.first_seq <= seq + 1).map(Arc::clone)
    }
}

/// Puts the events of a run into its stream, on the cell's thread.
pub struct Recorder {
    pub stream: Arc<Stream>,
    /// The run's row once it is under way.
    pub started: RowUpdate,
}

impl Observer for Recorder {
    fn observe(&self, event: &Event<'_>) {
        self.stream.append(&TraceLine::of(event));
        if matches!(event, Event::Started) {
            drop(self.stream.update(self.started.clone()));
        }
    }

    fn attach(&self, span: &Span) {
        self.stream.attach(span);
    }

    fn wants_snapshot(&self) -> bool {
        self.stream.wants_snapshot()
    }

    fn save_snapshot(&self, snapshot: RunSnapshot) {
        self.stream.save(snapshot);
    }

    fn is_behind(&self) -> bool {
        self.stream.own_bytes.load(Ordering::Relaxed) > RUN_BYTES_MAX
            || self.stream.shared.waiting_bytes.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }

    fn wake_when_free(&self, wake: Wake) {
        let mut wakes = self.stream.shared.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_behind() {
            wakes.push(wake);
        } else {
            drop(wakes);
            wake();
        }
    }
}
