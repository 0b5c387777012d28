//! Coordinator `process`: a program decides.

use std::sync::Arc;

use async_trait::async_trait;

use super::pool::ProcessPool;
use super::{ProcessError, answer, request};
use crate::{AgentError, AsyncCoordinator, Ruling};
use prime_protocol::{Role, Thresholds, Trajectory, Verdict};
use prime_settings::Program;

/// A program as coordinator. Clones share its processes, which are terminated with the last clone.
#[derive(Clone)]
pub struct ProcessCoordinator {
    pool: Arc<ProcessPool>,
    thresholds: Thresholds,
}

impl ProcessCoordinator {
    /// Starts the program's processes without waiting for them. `name` appears in errors and in the
    /// handshake. The program is told the thresholds but need not follow them.
    ///
    /// # Errors
    /// No program is configured, or no thread can be started. A program that cannot be started
    /// fails turns instead.
    pub fn start(
        name: &str,
        program: &Program,
        thresholds: Thresholds,
    ) -> Result<Self, ProcessError> {
        Ok(Self {
            pool: Arc::new(ProcessPool::start(Role::Coordinator, name, program)?),
            thresholds,
        })
    }

    /// Its processes.
    pub fn pool(&self) -> &Arc<ProcessPool> {
        &self.pool
    }
}

#[async_trait]
impl AsyncCoordinator for ProcessCoordinator {
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError> {
        let request = |id| request::decide(id, trajectory, line, verdict, &self.thresholds);
        let answer = self.pool.ask(request).await?;
        answer::ruling(&answer).map_err(|fault| self.pool.error(fault.failure, fault.reason))
    }
}
