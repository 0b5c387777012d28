//! A run that this process carries, and the record that its users see.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::spec::{Origin, RunSpec};
use super::stream::Stream;
use crate::report::{Reviews, RunResult, Solved};
use crate::runtime::Canceller;
use prime_journal::{ReviewCounts, RunRow};
use prime_protocol::{Ending, Outcome};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, and not begun.
    Queued,
    Running,
    /// Over, with an answer all of whose steps were clean in the eyes of its verifier.
    Verified,
    /// Over, with another answer or none.
    Unverified,
    /// An agent failed for good; `failure` says why.
    Failed,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Verified, Self::Unverified, Self::Failed, Self::Cancelled];

    pub fn name(self) -> &'static str {
        ["queued", "running", "verified", "unverified", "failed", "cancelled"][self as usize]
    }

    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// Of a run that is over.
    pub fn of(outcome: &Outcome) -> Self {
        match &outcome.ending {
            Ending::AgentFailed(_) => Self::Failed,
            Ending::Cancelled => Self::Cancelled,
            _ if outcome.verified => Self::Verified,
            _ => Self::Unverified,
        }
    }
}

/// A run as its users see it: nothing in it comes from events that are not durable.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunRecord {
    pub id: String,
    pub status: Status,
    /// How often it went on in another process than before.
    pub resumed: u32,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub updated_at: String,
    /// Number of its last durable event; `Last-Event-ID` and `fork?seq=` count so.
    pub events: u64,
    /// The hash chain over what was asked for and its events, up to that one: SHA-256 in hex.
    pub chain: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Origin>,
    #[serde(flatten)]
    pub result: RunResult,
}

/// A point in time as users see it.
pub fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

impl RunRecord {
    /// Of a row of the journal.
    ///
    /// # Errors
    /// When the row was not written by a version that this one understands.
    pub fn of_row(row: &RunRow) -> Result<Self, serde_json::Error> {
        let spec: RunSpec = serde_json::from_str(&row.spec)?;
        let status = Status::ALL.into_iter().find(|status| status.name() == row.status);
        Ok(Self {
            id: row.id.clone(),
            status: status.ok_or_else(|| serde::de::Error::custom(format!("unknown status {:?}", row.status)))?,
            resumed: row.resumed,
            created_at: timestamp(row.created_ms),
            updated_at: timestamp(row.updated_ms),
            events: row.head.seq,
            chain: row.head.hash.to_string(),
            forked_from: spec.forked_from,
            result: serde_json::from_str(&row.summary)?,
        }
        .reviewed(row.reviews))
    }

    /// With these counts of its flagged steps.
    #[must_use]
    pub(super) fn reviewed(mut self, reviews: ReviewCounts) -> Self {
        self.result.reviews = Reviews::of(reviews.needed, reviews.open, reviews.rejected);
        self
    }
}

/// A run that is not over.
pub struct LiveRun {
    pub owner: String,
    pub created_ms: u64,
    pub spec: RunSpec,
    pub solved: Solved,
    pub resumed: AtomicU32,
    pub stream: Arc<Stream>,
    canceller: Mutex<Option<Canceller>>,
    is_cancelled: AtomicBool,
    updated_ms: std::sync::atomic::AtomicU64,
}

impl LiveRun {
    pub fn new(row: &RunRow, spec: RunSpec, solved: Solved, stream: Arc<Stream>) -> Self {
        Self {
            owner: row.owner.clone(),
            created_ms: row.created_ms,
            spec,
            solved,
            resumed: AtomicU32::new(row.resumed),
            stream,
            canceller: Mutex::default(),
            is_cancelled: AtomicBool::new(false),
            updated_ms: row.updated_ms.into(),
        }
    }

    /// It is in the runtime now.
    pub fn set_canceller(&self, canceller: Canceller) {
        let mut place = self.canceller.lock().unwrap_or_else(PoisonError::into_inner);
        let canceller = place.insert(canceller);
        if self.is_cancelled.load(Ordering::SeqCst) {
            canceller.cancel();
        }
    }

    /// Ends it with what is known; if it is not in the runtime yet, as soon as it is.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        if let Some(canceller) = &*self.canceller.lock().unwrap_or_else(PoisonError::into_inner) {
            canceller.cancel();
        }
    }

    /// What is durable of it, without what was said of its steps.
    pub fn record(&self) -> RunRecord {
        let committed = self.stream.committed();
        let mut result = RunResult::open(&self.solved);
        committed.progress.fill(&mut result, self.spec.plan.trajectories());
        let elapsed = committed.progress.elapsed_ms;
        RunRecord {
            id: self.stream.id.clone(),
            status: if committed.progress.is_under_way { Status::Running } else { Status::Queued },
            resumed: self.resumed.load(Ordering::Relaxed),
            created_at: timestamp(self.created_ms),
            updated_at: timestamp(self.updated_ms.load(Ordering::Relaxed).max(self.created_ms + elapsed)),
            events: committed.head.seq,
            chain: committed.head.hash.to_string(),
            forked_from: self.spec.forked_from.clone(),
            result,
        }
    }
}
