//! PRIME itself, as pure code: what happens to trajectories and runs when verdicts and decisions arrive.
//! No clock, no I/O, no actors, no agents: actors carry out what these functions return.

pub mod budget;
pub mod coordination;
mod foresight;
mod lockstep;
mod outcome;
mod plan;
pub mod reliability;
pub mod replay;
pub mod reward;
mod role;
pub mod run;
mod score;
mod seed;
mod snapshot;
mod speculations;
pub mod stack;
pub mod strategy;
mod totals;
pub mod trajectory;
pub mod vote;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod searching;

pub use budget::{Budget, Left, Limit};
pub use coordination::{Adaptive, Decision, Thresholds};
pub use lockstep::Chosen;
pub use outcome::{Ballot, Ending, Outcome};
pub use plan::RunPlan;
pub use reliability::{Ahead, StepVotes};
pub use replay::{Replay, Replayed, RunInput, SuspendedRun};
pub use reward::{Reward, RewardWeights};
pub use role::Role;
pub use run::{Effect, Run, TurnId, TurnOutcome};
pub use score::Score;
pub use seed::{sample_seed, turn_seed};
pub use snapshot::RunSnapshot;
pub use speculations::Speculations;
pub use stack::StateStack;
pub use strategy::{Beam, Strategy, VoteRule};
pub use trajectory::{End, Limits, Next, Opinion, Trajectory, Usage, Verdict};
