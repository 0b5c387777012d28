//! Why a recorded run cannot be replayed.

use prime_bench::tasks::Unanswered;

/// A record that contradicts itself: it was written by another version of the task, or is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A recorded step cannot be applied.
    #[error("the recorded step `{line}` at depth {depth} cannot be replayed: {reason}")]
    Step {
        /// The recorded action line.
        line: String,
        /// Number of committed steps below it.
        depth: usize,
        /// Why it cannot be applied.
        reason: String,
    },
    /// A program computes the task's steps and does not answer at present. The record may be
    /// intact.
    #[error("{0}")]
    Unanswered(String),
    /// A program computes the task's steps and answers otherwise than when the run was recorded.
    #[error(
        "the task's program answers otherwise than when the run was recorded: {0}; give it the \
         program that it was accepted with, or submit it as a new run"
    )]
    OtherProgram(String),
    /// The record decides on a turn that was not in flight.
    #[error("the record has a turn that was not in flight: round {round}, trajectory {trajectory}")]
    NotInFlight {
        /// Number of the round, from 1.
        round: u32,
        /// Index of the trajectory in its round, from 0.
        trajectory: u32,
    },
}

impl From<Unanswered> for ReplayError {
    fn from(error: Unanswered) -> Self {
        if error.is_contradiction {
            Self::OtherProgram(error.to_string())
        } else {
            Self::Unanswered(error.to_string())
        }
    }
}
