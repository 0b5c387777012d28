//! Executor `process`: a program proposes steps.

use std::sync::Arc;

use async_trait::async_trait;

use super::pool::ProcessPool;
use super::{ProcessError, answer, request};
use crate::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_protocol::{Role, Trajectory};
use prime_settings::Program;

/// A program as executor. Clones share its processes, which are terminated with the last clone.
#[derive(Clone)]
pub struct ProcessExecutor(Arc<ProcessPool>);

impl ProcessExecutor {
    /// Starts the program's processes without waiting for them. `name` appears in errors and in the
    /// handshake.
    ///
    /// # Errors
    /// No program is configured, or no thread can be started. A program that cannot be started
    /// fails turns instead.
    pub fn start(name: &str, program: &Program) -> Result<Self, ProcessError> {
        Ok(Self(Arc::new(ProcessPool::start(Role::Executor, name, program)?)))
    }

    /// Its processes.
    pub fn pool(&self) -> &Arc<ProcessPool> {
        &self.0
    }
}

#[async_trait]
impl AsyncExecutor for ProcessExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let line = self.0.ask(|id| request::propose(id, trajectory, sampling)).await?;
        answer::proposal(&line).map_err(|fault| self.0.error(fault.failure, fault.reason))
    }
}
