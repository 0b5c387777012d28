//! What a run lets others see while it goes on.

use crate::agents::Proposal;
use crate::protocol::{Ballot, Decision, End, Outcome, Reward, TurnId, Verdict};

/// Something happened in a run; borrowed, so that nobody watching costs nothing.
pub enum Event<'a> {
    /// A proposal was judged and decided on.
    Step {
        id: TurnId,
        /// Committed steps below the proposal.
        depth: usize,
        proposal: &'a Proposal,
        is_applicable: bool,
        verdict: &'a Verdict,
        decision: Decision,
    },
    TrajectoryEnded {
        id: TurnId,
        end: &'a End,
        reward: &'a Reward,
    },
    Voted {
        round: u32,
        winner: Option<&'a Ballot>,
        agreement: f64,
    },
    Finished(&'a Outcome),
}

/// Sees the events of a run, on the cell's thread: must return at once and must not panic.
pub trait Observer: Send + Sync {
    fn observe(&self, event: &Event<'_>);
}

/// Sees nothing.
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _: &Event<'_>) {}
}
