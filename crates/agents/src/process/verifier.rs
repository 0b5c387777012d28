//! Verifier `process`: a program judges steps.

use std::sync::Arc;

use async_trait::async_trait;

use super::pool::ProcessPool;
use super::{ProcessError, answer, request};
use crate::{AgentError, AsyncVerifier, Basis};
use prime_bench::tasks::{CheckedKinds, Spec};
use prime_protocol::{Role, Trajectory, Verdict};
use prime_settings::Program;

/// A program as verifier. Clones share its processes, which are terminated with the last clone.
#[derive(Clone)]
pub struct ProcessVerifier {
    pool: Arc<ProcessPool>,
    kinds: CheckedKinds,
}

impl ProcessVerifier {
    /// Starts the program's processes without waiting for them. `name` appears in errors and in the
    /// handshake. `kinds` are the kinds of constraints that the program checks, as declared by its
    /// owner; every result names them.
    ///
    /// # Errors
    /// No program is configured, or no thread can be started. A program that cannot be started
    /// fails turns instead.
    pub fn start(name: &str, program: &Program, kinds: CheckedKinds) -> Result<Self, ProcessError> {
        Ok(Self { pool: Arc::new(ProcessPool::start(Role::Verifier, name, program)?), kinds })
    }

    /// Its processes.
    pub fn pool(&self) -> &Arc<ProcessPool> {
        &self.pool
    }
}

#[async_trait]
impl AsyncVerifier for ProcessVerifier {
    fn basis(&self, task: &Spec) -> Basis {
        Basis::program(self.kinds.of(task))
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let answer = self.pool.ask(|id| request::judge(id, trajectory, line)).await?;
        answer::verdict(&answer).map_err(|fault| self.pool.error(fault.failure, fault.reason))
    }
}
