//! The one thread that writes the journal. It gathers what waits into one commit (group commit), and only then says
//! that it is done. While the journal cannot be written, runs wait, new ones are refused, and it tries again.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::stream::{Committed, Shared, Stream};
use prime_journal::{IdempotencyKey, Journal, JournalError, Review, RunRow, Segment, Write};

/// Time between two attempts to write a journal that could not be written.
const RETRY: Duration = Duration::from_millis(200);
/// Orders that one commit takes at most.
const ORDERS_MAX: usize = 4_096;
/// Bytes of events and saved states after which a commit takes no further run: whoever waits for the next commit waits
/// for this one first. Less when somebody waits for this one.
const COMMIT_BYTES: usize = 2 << 20;
const URGENT_BYTES: usize = 256 << 10;
/// Longest time after the end was asked for in which a further commit is begun. What is not written by then is computed
/// again by the next process, like all that was not committed.
const FINISH: Duration = Duration::from_secs(1);
/// Exit code when the disk failed: `EX_IOERR`.
const DISK_FAILED: i32 = 74;

/// Why the journal cannot take something now.
pub type NotWritable = String;

/// What the writer is asked for.
pub enum Order {
    /// A run to accept; the answer comes when it is durable.
    Accept { row: Box<RunRow>, key: Option<IdempotencyKey>, reply: oneshot::Sender<Result<(), NotWritable>> },
    /// What a person said of a flagged event; the answer comes when it is durable.
    Review { id: String, seq: u64, review: Review, reply: oneshot::Sender<Result<(), NotWritable>> },
    /// A stream has something waiting.
    Stream(Arc<Stream>),
    /// Whether a run handed in now could be kept.
    Probe(oneshot::Sender<Result<(), NotWritable>>),
    /// Write what waits, and end.
    Stop,
}

/// Hears of each commit: how many events it had, and how many seconds it took.
type Measure = Box<dyn Fn(usize, f64) + Send>;

/// The writer's thread, and the way to it.
pub struct Writer {
    orders: Sender<Order>,
    shared: Arc<Shared>,
    failure: Arc<Mutex<Option<String>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. `window` is how long it waits for company for a lone event; `measure` hears of each commit.
    pub fn start(journal: Arc<dyn Journal>, window: Duration, measure: Measure) -> std::io::Result<Self> {
        let (orders, inbox) = crossbeam_channel::unbounded();
        let shared = Arc::new(Shared::default());
        let failure = Arc::new(Mutex::new(None));
        let thread = Writing {
            journal,
            inbox,
            window,
            measure,
            shared: Arc::clone(&shared),
            failure: Arc::clone(&failure),
            streams: VecDeque::new(),
            batch: Batch::default(),
        };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || thread.run())?;
        Ok(Self { orders, shared, failure, thread: Mutex::new(Some(thread)) })
    }

    pub fn orders(&self) -> Sender<Order> {
        self.orders.clone()
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Why the journal cannot be written at present, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn ask(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<(), NotWritable>>) -> Order,
    ) -> Result<(), NotWritable> {
        let (reply, answer) = oneshot::channel();
        let gone = || "the daemon is stopping".to_owned();
        self.orders.send(order(reply)).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Makes a run durable.
    ///
    /// # Errors
    /// When it could not be written; it is then not accepted.
    pub async fn accept(&self, row: RunRow, key: Option<IdempotencyKey>) -> Result<(), NotWritable> {
        self.ask(|reply| Order::Accept { row: Box::new(row), key, reply }).await
    }

    /// Makes a review durable.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn review(&self, id: String, seq: u64, review: Review) -> Result<(), NotWritable> {
        self.ask(|reply| Order::Review { id, seq, review, reply }).await
    }

    /// Writes something of no meaning.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn probe(&self) -> Result<(), NotWritable> {
        self.ask(Order::Probe).await
    }

    /// Takes nothing more, writes what waits, and ends the thread. Blocks until it is done.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        drop(self.orders.send(Order::Stop));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was printed; the journal holds what was committed.
            drop(thread.join());
        }
    }
}

type Reply = oneshot::Sender<Result<(), NotWritable>>;

/// What a stream gets when its part of the batch is durable.
struct Publication {
    stream: Arc<Stream>,
    segment: Option<Segment>,
    committed: Committed,
    acks: Vec<oneshot::Sender<()>>,
}

/// One commit in the making.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    publications: Vec<Publication>,
    replies: Vec<Reply>,
    /// Writes that somebody waits for stand first, so that they can be taken out when the journal is full.
    asked: usize,
    probes: Vec<Reply>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.probes.is_empty()
    }

    /// Adds a write that somebody waits for.
    fn ask(&mut self, write: Write, reply: Reply) {
        self.writes.insert(self.asked, write);
        self.asked += 1;
        self.replies.push(reply);
    }

    /// Whether somebody waits for it to be durable.
    fn is_urgent(&self) -> bool {
        self.asked > 0 || !self.probes.is_empty()
    }

    /// Takes what waits in a stream; says how many bytes that was.
    fn take(&mut self, stream: Arc<Stream>) -> usize {
        let pending = stream.take();
        let bytes = pending.body.len() + pending.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        let mut committed = Committed { progress: pending.progress, ..stream.committed() };
        let mut flagged = Vec::new();
        let segment = (pending.count > 0).then(|| {
            let segment = Segment::of_lines(committed.head, pending.count, pending.body);
            flagged = pending.flagged.iter().map(|place| committed.head.seq + u64::from(*place)).collect();
            committed.head = segment.head();
            segment
        });
        if let Some(segment) = &segment {
            self.writes.push(Write::Append { id: stream.id.clone(), segment: segment.clone() });
        }
        if !flagged.is_empty() {
            self.writes.push(Write::Flag { id: stream.id.clone(), seqs: flagged });
        }
        if let Some(snapshot) = pending.snapshot {
            self.writes.push(Write::Save { id: stream.id.clone(), snapshot });
        }
        if let Some(update) = pending.update {
            committed.is_over = update.is_over;
            self.writes.push(Write::Update {
                id: stream.id.clone(),
                updated_ms: update.updated_ms,
                status: update.status,
                is_over: update.is_over,
                resumed: update.resumed,
                summary: update.summary,
            });
        }
        if segment.is_some() || !pending.acks.is_empty() {
            self.publications.push(Publication { stream, segment, committed, acks: pending.acks });
        }
        bytes
    }

    /// Refuses what nobody was promised: runs to accept, reviews, and probes.
    fn refuse(&mut self, reason: &str) {
        self.writes.drain(..self.asked);
        self.asked = 0;
        for reply in self.replies.drain(..).chain(self.probes.drain(..)) {
            drop(reply.send(Err(reason.to_owned())));
        }
    }

    fn publish(self) -> usize {
        let mut events = 0;
        for reply in self.replies.into_iter().chain(self.probes) {
            drop(reply.send(Ok(())));
        }
        for Publication { stream, segment, committed, acks } in self.publications {
            events += segment.as_ref().map_or(0, |segment| segment.count as usize);
            stream.publish(segment, committed);
            // Whoever waited may be gone.
            for ack in acks {
                let _ = ack.send(());
            }
        }
        events
    }
}

/// The thread's own.
struct Writing {
    journal: Arc<dyn Journal>,
    inbox: Receiver<Order>,
    window: Duration,
    measure: Measure,
    shared: Arc<Shared>,
    failure: Arc<Mutex<Option<String>>>,
    /// Streams with something waiting that are not in the batch yet, in the order in which they are taken.
    streams: VecDeque<Arc<Stream>>,
    batch: Batch,
}

/// Whether an order is waited for by somebody.
enum Urgency {
    Now,
    Later,
    Stop,
}

impl Writing {
    fn run(mut self) {
        loop {
            let is_stuck = self.failure().is_some() && !self.batch.is_empty();
            let first = if is_stuck {
                match self.inbox.recv_timeout(RETRY) {
                    Ok(order) => Some(order),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else if !self.streams.is_empty() {
                self.inbox.try_recv().ok()
            } else {
                match self.inbox.recv() {
                    Ok(order) => Some(order),
                    Err(_) => return,
                }
            };
            let is_stopping = self.gather(first);
            if !is_stuck || self.batch.writes.is_empty() {
                self.fill();
            }
            self.commit();
            if is_stopping {
                return self.finish();
            }
        }
    }

    /// Takes what waits in the streams into the batch, as much as one commit may have.
    fn fill(&mut self) {
        let limit = if self.batch.is_urgent() { URGENT_BYTES } else { COMMIT_BYTES };
        let mut bytes = 0;
        while bytes < limit
            && let Some(stream) = self.streams.pop_front()
        {
            bytes += self.batch.take(stream);
        }
    }

    /// Writes what still waits, as far as there is time; a journal that cannot be written now is left as it is.
    fn finish(mut self) {
        let until = Instant::now() + FINISH;
        while self.failure().is_none() && !self.streams.is_empty() && Instant::now() < until {
            self.fill();
            self.commit();
        }
    }

    /// Takes an order; says how urgent it is.
    fn take(&mut self, order: Order) -> Urgency {
        match order {
            Order::Accept { row, key, reply } => {
                self.batch.ask(Write::Accept { row: *row, key }, reply);
                Urgency::Now
            }
            Order::Review { id, seq, review, reply } => {
                self.batch.ask(Write::Review { id, seq, review }, reply);
                Urgency::Now
            }
            Order::Stream(stream) => {
                self.streams.push_back(stream);
                Urgency::Later
            }
            Order::Probe(reply) => {
                self.batch.probes.push(reply);
                Urgency::Now
            }
            Order::Stop => Urgency::Stop,
        }
    }

    /// Takes the orders that are there, and waits a little for more when nobody waits for these; says whether to end.
    fn gather(&mut self, first: Option<Order>) -> bool {
        let Some(first) = first else { return false };
        // Company is there already when an earlier commit could not take all.
        let window = if self.streams.is_empty() { self.window } else { Duration::ZERO };
        let until = Instant::now() + window;
        let mut urgency = self.take(first);
        for _ in 0..ORDERS_MAX {
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

    fn commit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let started = Instant::now();
        let result =
            if self.batch.writes.is_empty() { self.journal.probe() } else { self.journal.commit(&self.batch.writes) };
        match result {
            Ok(()) => {
                if self.failure().is_some() {
                    tracing::info!("the journal can be written again");
                    self.set_failure(None);
                }
                let events = std::mem::take(&mut self.batch).publish();
                (self.measure)(events, started.elapsed().as_secs_f64());
                self.shared.wake_all();
            }
            Err(JournalError::DiskFailed(reason)) => {
                // Whether earlier pages reached the disk is unknown: a retry could report success falsely.
                tracing::error!(%reason, "the journal's disk failed: the process ends; what was acknowledged is durable");
                eprintln!("error: the journal's disk failed: {reason}");
                std::process::exit(DISK_FAILED);
            }
            Err(error @ JournalError::NotWritable(_)) => {
                let reason = error.to_string();
                if self.failure().is_none() {
                    tracing::error!(%reason, "runs wait until the journal can be written");
                }
                self.batch.refuse(&reason);
                self.set_failure(Some(reason));
            }
            Err(error) => {
                tracing::error!(%error, "a batch was refused: its writes are tried one by one");
                self.commit_singly();
            }
        }
    }

    /// After a batch was refused: whatever can be written is; what cannot is given up, by name.
    fn commit_singly(&mut self) {
        let Batch { writes, publications, replies, probes, asked } = std::mem::take(&mut self.batch);
        let mut writes = writes.into_iter();
        for (write, reply) in writes.by_ref().take(asked).zip(replies) {
            let result = self.journal.commit(&[write]).map_err(|error| error.to_string());
            drop(reply.send(result));
        }
        let mut refused: Vec<String> = Vec::new();
        for write in writes {
            let id = match &write {
                Write::Append { id, .. }
                | Write::Update { id, .. }
                | Write::Save { id, .. }
                | Write::Flag { id, .. }
                | Write::Review { id, .. } => id.clone(),
                Write::Accept { row, .. } => row.id.clone(),
            };
            if refused.contains(&id) {
                continue;
            }
            if let Err(error) = self.journal.commit(&[write]) {
                tracing::error!(run = %id, %error, "this run's record is given up");
                refused.push(id);
            }
        }
        let kept: Vec<_> =
            publications.into_iter().filter(|publication| !refused.contains(&publication.stream.id)).collect();
        Batch { publications: kept, probes, ..Batch::default() }.publish();
        self.shared.wake_all();
    }
}
