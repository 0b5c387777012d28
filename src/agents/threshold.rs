//! Coordinator `threshold`: the paper's policy (eq. 3).

use async_trait::async_trait;

use super::{AgentError, Coordinator};
use crate::protocol::{Decision, Thresholds, Trajectory, Verdict};

pub struct ThresholdCoordinator(pub Thresholds);

#[async_trait]
impl Coordinator for ThresholdCoordinator {
    async fn decide(&self, trajectory: &Trajectory, verdict: &Verdict) -> Result<Decision, AgentError> {
        Ok(self.0.decide(verdict.score, trajectory.stack.top().retries))
    }
}
