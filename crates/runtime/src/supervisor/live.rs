//! A run in a cell.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::time::delay_queue;
use tracing::Span;

use super::approvals::Held;
use crate::speculation::Speculation;
use crate::submission::Submission;
use prime_protocol::{Run, Trajectory, TurnId};
use prime_roles::AgentSetId;

/// A cell's clock, in milliseconds since its start. Differences of integers cost a step less than
/// differences of instants.
#[derive(Clone, Copy)]
pub struct CellClock(Instant);

impl CellClock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn now_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A run that has begun and has not ended.
pub struct Live {
    pub run: Run,
    /// The set that its agents belong to.
    pub agents: AgentSetId,
    /// `None` if nobody listens to spans.
    pub span: Option<Arc<Span>>,

    pub submission: Submission,
    pub started: Instant,
    pub cell: CellClock,
    /// Start on the cell's clock, in milliseconds.
    pub started_ms: u64,
    /// `None` if its time is unlimited, or up.
    pub deadline: Option<delay_queue::Key>,
    /// Milliseconds that the run took before this process resumed it.
    pub elapsed_before_ms: u64,

    /// The last failure of an agent, by role, if no step has succeeded since.
    pub last_failure: Option<String>,
    /// Turns that wait until the hold ends.
    pub held: Vec<Waiting>,
    pub hold: Option<Hold>,
    /// True if the observer may hold steps for approval.
    pub may_hold: bool,
    /// Steps that were held for approval so far.
    pub holds: u32,
    /// Those that wait.
    pub approvals: Vec<Held>,
    /// The proposal after the step that was just committed, if it was started early, and its turn.
    pub started_early: Option<(TurnId, Box<Speculation>)>,
    /// Dropped to cancel the round's early proposals; `None` if the run does not speculate.
    pub round: Option<watch::Sender<()>>,
}

/// A turn between two proposals.
pub struct Waiting {
    pub id: TurnId,
    pub trajectory: Box<Trajectory>,
    /// Its next proposal, if that was started early.
    pub speculation: Option<Box<Speculation>>,
}

/// Why a run makes no proposals for a while.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The observer cannot keep up; it wakes the run.
    Behind,
    /// Its turns are being gathered for a snapshot.
    Snapshot,
}

impl Live {
    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms_at(self.cell.now_ms())
    }

    /// Run time at `now_ms` of the cell's clock.
    pub fn elapsed_ms_at(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.started_ms).saturating_add(self.elapsed_before_ms)
    }
}
