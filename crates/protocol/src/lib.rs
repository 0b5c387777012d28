//! The PRIME protocol as pure functions: what verdicts and decisions do to trajectories and runs.
//! No clock, no I/O, no actors, no agents: callers execute the effects that these functions return.

#![warn(missing_docs)]

mod approval;
mod assurance;
mod basis;
mod batch;
pub mod budget;
mod completion_shares;
pub mod coordination;
mod cost;
mod end;
mod judges;
mod learnt;
mod limits;
mod located;
mod lookahead;
mod outcome;
mod particle_filter;
mod plan;
mod progress;
mod rejection;
pub mod reliability;
pub mod replay;
mod replay_error;
mod retreat;
pub mod reward;
mod role;
pub mod run;
mod run_counters;
mod score;
mod search_counts;
mod seed;
mod snapshot;
mod speculations;
pub mod stack;
pub mod strategy;
mod stuck_states;
mod suspects;
mod synchronous_search;
pub mod trajectory;
mod tree;
mod tree_search;
mod turn;
mod verdict;
pub mod vote;

#[cfg(test)]
mod basis_tests;
#[cfg(test)]
mod particle_filter_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod retreat_tests;
#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod stuck_tests;
#[cfg(test)]
mod tree_search_tests;

pub use approval::{Approval, ApprovalVerdict, HeldStep, Resolution};
pub use assurance::Assurance;
pub use basis::{Basis, Method};
pub use budget::{Budget, Left, Limit};
pub use coordination::{Adaptive, Decision, Thresholds};
pub use cost::{Cost, Price};
pub use learnt::Learnt;
pub use located::{Fault, Located};
pub use outcome::{Ballot, Ending, Outcome};
pub use plan::RunPlan;
pub use rejection::{Rejection, StuckAt};
pub use reliability::{Ahead, StepVotes};
pub use replay::{Replay, Replayed, RunInput, SuspendedRun};
pub use replay_error::ReplayError;
pub use reward::{JudgedStep, Reward, RewardWeights, StepRewards};
pub use role::{Role, RoleTimes};
pub use run::{Effect, Run};
pub use score::Score;
pub use search_counts::SearchCounts;
pub use seed::{sample_seed, turn_seed};
pub use snapshot::RunSnapshot;
pub use speculations::Speculations;
pub use stack::StateStack;
pub use strategy::{Beam, ParticleFilter, Strategy, Uct, VoteRule};
pub use synchronous_search::Chosen;
pub use trajectory::{End, Limits, Next, Opinion, Trajectory, Usage, Verdict};
pub use turn::{TurnId, TurnOutcome};
