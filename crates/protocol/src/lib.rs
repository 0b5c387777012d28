//! PRIME itself, as pure code: what happens to trajectories and runs when verdicts and decisions arrive.
//! No clock, no I/O, no actors, no agents: actors carry out what these functions return.

pub mod budget;
pub mod coordination;
pub mod fold;
mod foresight;
mod lockstep;
mod outcome;
mod plan;
pub mod reliability;
pub mod reward;
mod role;
pub mod run;
mod saved;
mod score;
mod seed;
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
pub use fold::{Fold, Folded, Happened, Resting};
pub use lockstep::Chosen;
pub use outcome::{Ballot, Ending, Outcome};
pub use plan::RunPlan;
pub use reliability::{Ahead, StepVotes};
pub use reward::{Reward, RewardWeights};
pub use role::Role;
pub use run::{Effect, Run, Settled, TurnId};
pub use saved::Saved;
pub use score::Score;
pub use seed::{sample_seed, turn_seed};
pub use speculations::Speculations;
pub use stack::StateStack;
pub use strategy::{Beam, Strategy, VoteRule};
pub use trajectory::{End, Limits, Next, Opinion, Trajectory, Usage, Verdict};
