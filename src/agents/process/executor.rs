//! Executor `process`: a program proposes the steps.

use std::sync::Arc;

use async_trait::async_trait;

use super::pool::ProcessPool;
use super::{ProcessError, answer, request};
use crate::agents::{AgentError, AsyncExecutor, Proposal, Sampling};
use crate::settings::Program;
use prime_protocol::{Role, Trajectory};

/// A program as executor. Copies share its processes, which end with the last copy.
#[derive(Clone)]
pub struct ProcessExecutor(Arc<ProcessPool>);

impl ProcessExecutor {
    /// Starts the program's processes, without waiting for them. `name` stands in errors and in the greeting.
    ///
    /// # Errors
    /// When no program is named, or no thread can be had. A program that cannot be started fails turns instead.
    pub fn start(name: &str, program: &Program) -> Result<Self, ProcessError> {
        Ok(Self(Arc::new(ProcessPool::start(Role::Executor, name, program)?)))
    }
}

#[async_trait]
impl AsyncExecutor for ProcessExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let line = self.0.ask(|id| request::propose(id, trajectory, sampling)).await?;
        answer::proposal(&line).map_err(|fault| self.0.error(fault.failure, fault.reason))
    }
}
