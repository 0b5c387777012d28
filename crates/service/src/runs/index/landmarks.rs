//! The ends of rounds and trajectories: votes and outcomes, as they were recorded.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The vote after a round.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunVote {
    /// The number of its event.
    pub seq: u64,
    /// Votes for the winner.
    pub votes: u32,
    /// The winner's share of the round's trajectories, 0 to 1.
    pub agreement: f64,
    /// The answer that won; null if no trajectory answered.
    #[schema(value_type = Value)]
    pub winner: Option<Value>,
}

/// How a trajectory ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TrajectoryEnd {
    /// The number of its event.
    pub seq: u64,
    /// `answered`, or the kind of failure.
    pub end: String,
    /// The trajectory's answer; null if it has none.
    #[schema(value_type = Value)]
    pub answer: Option<Value>,
    /// Why it failed; null otherwise.
    #[schema(required)]
    pub failure: Option<String>,
    /// The reward and its parts.
    #[schema(value_type = Object)]
    pub reward: Value,
}
