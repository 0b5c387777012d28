//! Coordinator `threshold`: the paper's policy (eq. 3).

use super::{AgentReply, Coordinator, Ruling};
use prime_protocol::{Thresholds, Trajectory, Verdict};

/// Compares the score of a step with two thresholds; see [`Thresholds::decide`].
pub struct ThresholdCoordinator(pub Thresholds);

impl Coordinator for ThresholdCoordinator {
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        _: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling> {
        AgentReply::now(Ok(self.0.decide(verdict.score, trajectory.stack.top().retries).into()))
    }
}
