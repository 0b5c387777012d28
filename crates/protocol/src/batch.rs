//! The samples of a search's slots, and what follows when all of them are in.

use super::basis::Basis;
use super::score::Score;
use super::trajectory::{End, Next, Summary, Trajectory};
use super::turn::TurnId;

/// A slot's proposal, with the slot's trajectory before it.
pub struct Sample {
    /// The slot's turn.
    pub id: TurnId,
    /// The trajectory before the proposal.
    pub trajectory: Box<Trajectory>,
    /// The proposed line.
    pub line: String,
    /// True if it can be applied.
    pub applicable: bool,
    /// True if it can be applied and the coordinator accepts it.
    pub passes: bool,
    /// V of the proposal.
    pub score: Score,
    /// On what its verdict rests.
    pub basis: Basis,
    /// ln p of the proposal, if the executor reported it.
    pub logprob: Option<f64>,
    /// Characters of the line and its derivation.
    pub characters: usize,
    /// What the verifier says to the executor.
    pub feedback: Option<String>,
    /// True if the executor has no line left at its state.
    pub exhausted: bool,
    /// Why there is no proposal, if there is none.
    pub failure: Option<String>,
}

/// What follows a complete batch.
pub enum Step {
    /// These slots propose next.
    Propose(Vec<(TurnId, Box<Trajectory>)>),
    /// The search has ended.
    Ended(TurnId, Summary, End),
}

/// Asks all slots again.
pub(super) fn again(samples: Vec<Sample>) -> Step {
    Step::Propose(samples.into_iter().map(|sample| (sample.id, sample.trajectory)).collect())
}

/// Ends the search at its first slot, without an answer.
pub(super) fn give_up(samples: &[Sample], end: End) -> Step {
    let first = samples.first().expect("invariant: a batch has a slot");
    Step::Ended(first.id, Summary::of(&first.trajectory), end)
}

/// Takes a step that was applied to a copy of the trajectory's state.
pub(super) fn commit(trajectory: &mut Trajectory, line: &str, score: Score, basis: Basis) -> Next {
    trajectory
        .machine
        .replay(line)
        .expect("invariant: the line was applied to a copy of this state");
    trajectory.push(line, score, basis)
}
