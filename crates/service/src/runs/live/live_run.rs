//! A run that is not over, in memory.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::standstill::Standstill;
use super::writings::Writings;
use crate::runs::approvals::waits::Waits;
use crate::runs::progress::Progress;
use crate::runs::record::{RunRecord, Status, timestamp};
use crate::runs::spec::RunSpec;
use crate::runs::store::event_stream::{Committed, EventStream};
use crate::runs::title::title_of;
use prime_journal::RunRow;
use prime_protocol::Resolution;
use prime_report::{RunContext, RunResult};
use prime_runtime::Canceller;
use tokio::sync::Notify;

/// An open run. Its fields are fixed, except for locks and atomics.
pub struct LiveRun {
    /// The owner: the name of the client's key; empty without keys.
    pub owner: String,
    /// When it was accepted, in milliseconds since 1970.
    pub created_ms: u64,
    /// Everything that determines what the run does.
    pub spec: RunSpec,
    /// The part of its result that does not depend on the outcome.
    pub context: RunContext,
    /// How often another process resumed it.
    pub resumed: AtomicU32,
    /// Its events on their way into the journal and to readers.
    pub stream: Arc<EventStream>,
    /// What its models write.
    pub writings: Arc<Writings>,
    /// Its steps that wait for approval.
    pub(in crate::runs) waits: Arc<Waits>,
    /// True if it moves.
    pub(in crate::runs) standstill: Standstill,

    canceller: Mutex<Option<Canceller>>,
    is_cancelled: AtomicBool,
    cancellation: Notify,
    /// It leaves the memory, because all of it waits for approval.
    is_parked: AtomicBool,
    /// It waits for a place, although another process began it.
    is_queued: AtomicBool,

    /// Why its agents cannot be built, while it waits for them.
    waiting_for: Mutex<Option<String>>,
    updated_ms: AtomicU64,
    /// The counts of the durable events, while they are not replayed yet.
    counts: OnceLock<Progress>,
}

impl LiveRun {
    /// An open run from its row, whose events go into this stream.
    pub fn new(row: &RunRow, spec: RunSpec, context: RunContext, stream: Arc<EventStream>) -> Self {
        Self {
            owner: row.owner.clone(),
            created_ms: row.created_ms,
            spec,
            context,
            resumed: AtomicU32::new(row.resumed),
            stream,
            writings: Arc::default(),
            waits: Arc::default(),
            standstill: Standstill::default(),
            is_parked: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            canceller: Mutex::default(),
            is_cancelled: AtomicBool::new(false),
            cancellation: Notify::new(),
            waiting_for: Mutex::default(),
            updated_ms: row.updated_ms.into(),
            counts: OnceLock::new(),
        }
    }

    /// True if the stream has counted its events; right after a restart it has not.
    pub(in crate::runs) fn is_counted(&self) -> bool {
        let committed = self.stream.committed();
        committed.head.seq == 0 || committed.progress.proposals > 0 || self.counts.get().is_some()
    }

    /// What the record shows: the stream's counts, or until it has some, those of the journal.
    fn counts_of<'a>(&'a self, committed: &'a Committed) -> &'a Progress {
        let counts = if committed.progress.proposals > 0 { None } else { self.counts.get() };
        counts.unwrap_or(&committed.progress)
    }

    /// True if some steps need or needed review; then the journal has counts of reviews.
    pub(in crate::runs) fn has_reviews(&self) -> bool {
        self.counts_of(&self.stream.committed()).reviews_needed > 0
    }

    /// Sets what the record shows until the events are replayed.
    pub(in crate::runs) fn set_counts(&self, counts: Progress) {
        // All callers count the same events.
        drop(self.counts.set(counts));
    }

    /// Sets what cancels the run, once the runtime has it.
    pub fn set_canceller(&self, canceller: Canceller) {
        let mut current = self.canceller.lock().unwrap_or_else(PoisonError::into_inner);
        let canceller = current.insert(canceller);
        // The run was cancelled before the runtime had it.
        if self.is_cancelled.load(Ordering::SeqCst) {
            canceller.cancel();
        }
    }

    /// Ends the run with what is committed, as soon as the runtime has it, or at once while it
    /// waits for its agents.
    pub fn cancel(&self) {
        // This comes before the lock: a canceller that is set meanwhile then sees it.
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.cancellation.notify_one();
        if let Some(canceller) = &*self.canceller.lock().unwrap_or_else(PoisonError::into_inner) {
            canceller.cancel();
        }
    }

    /// Tells the runtime what was decided about a step, if it has the run. What is decided before it
    /// has, it gets from the journal.
    pub(in crate::runs) fn approve(&self, resolution: Resolution) {
        if let Some(canceller) = &*self.canceller.lock().unwrap_or_else(PoisonError::into_inner) {
            canceller.approve(resolution);
        }
    }

    /// Lets the record say that the run waits for approval.
    pub(in crate::runs) fn set_parked(&self) {
        self.is_parked.store(true, Ordering::Relaxed);
    }

    /// Lets the record say whether the run, which has begun, waits for a place again.
    pub(in crate::runs) fn set_queued(&self, is_queued: bool) {
        self.is_queued.store(is_queued, Ordering::Relaxed);
    }

    /// Resolves when the run is or was cancelled. For one waiter.
    pub(in crate::runs) async fn cancelled(&self) {
        self.cancellation.notified().await;
    }

    /// Says which agent the run waits for. Returns whether that is new.
    pub(in crate::runs) fn set_waiting_for(&self, missing: Option<String>) -> bool {
        let mut current = self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *current != missing;
        *current = missing;
        is_new
    }

    /// The record, without reviews.
    pub fn record(&self) -> RunRecord {
        let committed = self.stream.committed();
        let mut result = RunResult::open(&self.context);

        let counts = self.counts_of(&committed);
        counts.fill(&mut result, self.spec.plan.trajectories());
        let elapsed = counts.elapsed_ms;

        let waiting_for = self.waiting_for.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_queued = self.is_queued.load(Ordering::Relaxed) || waiting_for.is_some();
        let is_running = committed.progress.is_under_way && !is_queued;

        RunRecord {
            id: self.stream.id.clone(),
            title: title_of(&self.spec.task, &self.spec.instance, &self.spec.input),
            status: match is_running {
                true if self.is_parked.load(Ordering::Relaxed) => Status::Waiting,
                true => Status::Running,
                false => Status::Queued,
            },
            waiting_for,
            resumed: self.resumed.load(Ordering::Relaxed),
            created_at: timestamp(self.created_ms),
            // A step is newer than the row, which is written only when the status changes.
            updated_at: timestamp(
                self.updated_ms.load(Ordering::Relaxed).max(self.created_ms + elapsed),
            ),
            events: committed.head.seq,
            chain: committed.head.hash.to_string(),
            engines: self.spec.engines(),
            forked_from: self.spec.forked_from.clone(),
            retry_of: self.spec.retry_of.clone(),
            retried_as: Vec::new(),
            imported: None,
            labels: self.spec.labels.clone(),
            priority: self.spec.queueing.shown_priority(),
            not_before: self.spec.queueing.not_before_ms.map(timestamp),
            deadline: self.spec.queueing.deadline_ms.map(timestamp),
            result,
        }
    }
}
