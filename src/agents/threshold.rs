//! Coordinator `threshold`: the paper's policy (eq. 3).

use async_trait::async_trait;

use super::{AgentError, Coordinator, Ruling};
use prime_protocol::{Thresholds, Trajectory, Verdict};

pub struct ThresholdCoordinator(pub Thresholds);

#[async_trait]
impl Coordinator for ThresholdCoordinator {
    async fn decide(&self, trajectory: &Trajectory, _: &str, verdict: &Verdict) -> Result<Ruling, AgentError> {
        Ok(self.0.decide(verdict.score, trajectory.stack.top().retries).into())
    }

    fn decide_at_once(
        &self,
        trajectory: &Trajectory,
        _: &str,
        verdict: &Verdict,
    ) -> Option<Result<Ruling, AgentError>> {
        Some(Ok(self.0.decide(verdict.score, trajectory.stack.top().retries).into()))
    }
}
