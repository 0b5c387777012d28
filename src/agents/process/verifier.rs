//! Verifier `process`: a program judges the steps.

use std::sync::Arc;

use async_trait::async_trait;

use super::pool::ProcessPool;
use super::{ProcessError, answer, request};
use crate::agents::{AgentError, AsyncVerifier};
use crate::settings::Program;
use prime_bench::tasks::Kinds;
use prime_protocol::{Role, Trajectory, Verdict};

/// A program as verifier. Copies share its processes, which end with the last copy.
#[derive(Clone)]
pub struct ProcessVerifier {
    pool: Arc<ProcessPool>,
    kinds: Kinds,
}

impl ProcessVerifier {
    /// Starts the program's processes, without waiting for them. `name` stands in errors and in the greeting. `kinds` are
    /// the kinds of constraints that the program checks, as its owner says: every result names them.
    ///
    /// # Errors
    /// When no program is named, or no thread can be had. A program that cannot be started fails turns instead.
    pub fn start(name: &str, program: &Program, kinds: Kinds) -> Result<Self, ProcessError> {
        Ok(Self { pool: Arc::new(ProcessPool::start(Role::Verifier, name, program)?), kinds })
    }
}

#[async_trait]
impl AsyncVerifier for ProcessVerifier {
    fn kinds(&self) -> Kinds {
        self.kinds
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let answer = self.pool.ask(|id| request::judge(id, trajectory, line)).await?;
        answer::verdict(&answer).map_err(|fault| self.pool.error(fault.failure, fault.reason))
    }
}
