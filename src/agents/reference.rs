//! Executor `reference`: the task's own algorithm. It is no model, and every output that it led to says so.

use async_trait::async_trait;

use super::{AgentError, Executor, Proposal, Sampling};
use crate::protocol::Trajectory;

pub struct ReferenceExecutor;

#[async_trait]
impl Executor for ReferenceExecutor {
    async fn propose(&self, trajectory: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        // After wrong steps that were let through, the algorithm may prescribe nothing: that is no line of any grammar.
        let line = trajectory.machine.reference().unwrap_or_else(|| "no next step".to_owned());
        Ok(Proposal { line, ..Proposal::default() })
    }
}
