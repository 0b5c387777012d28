//! What every agent must keep, whoever wrote it: a suite that drives an agent over real tasks and reports what it breaks.
//!
//! For those who write agents: give the suite a way to make yours, inside a tokio runtime with time, and demand that the
//! list of findings is empty. Errors are answers too: an agent may refuse what it cannot do, as long as it says so in
//! time and by name. `agents/examples/no_undo.rs` shows the whole of it.
//!
//! ```
//! use std::sync::Arc;
//! use prime_agents::agents::{ReferenceExecutor, conformance};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let findings = conformance::executor(|| Arc::new(ReferenceExecutor)).await;
//! assert!(findings.is_empty(), "{findings:#?}");
//! # });
//! ```
//!
//! What it cannot find: an agent that blocks its thread, which hangs the suite as it would hang a cell.

mod coordinator;
mod drive;
mod executor;
mod finding;
#[cfg(test)]
mod tests;
mod turns;
mod verifier;

use std::sync::Arc;
use std::time::Duration;

pub use finding::{Finding, Rule};

use super::{Coordinator, Executor, Verifier};

/// What is demanded of an agent, beyond the rules that have no measure.
#[derive(Clone, Debug)]
pub struct Demands {
    /// Longest time of one turn, its start included where the first turn brings one about.
    pub within: Duration,
    /// Most bytes of a proposed line.
    pub line_bytes_max: usize,
    /// Names that a verifier may give to violations, beside those of the task's constraints.
    pub own_violations: Vec<String>,
}

impl Default for Demands {
    fn default() -> Self {
        Self { within: Duration::from_secs(30), line_bytes_max: 1 << 16, own_violations: Vec::new() }
    }
}

/// Drives an executor with the usual demands.
pub async fn executor(make: impl Fn() -> Arc<dyn Executor>) -> Vec<Finding> {
    executor_with(make, &Demands::default()).await
}

/// Drives an executor. The suite ends at the first turn without an answer.
pub async fn executor_with(make: impl Fn() -> Arc<dyn Executor>, demands: &Demands) -> Vec<Finding> {
    drive::drive(executor::Subject(make()), demands).await
}

/// Drives a verifier with the usual demands.
pub async fn verifier(make: impl Fn() -> Arc<dyn Verifier>) -> Vec<Finding> {
    verifier_with(make, &Demands::default()).await
}

/// Drives a verifier, made twice to compare its kinds. The suite ends at the first turn without an answer.
pub async fn verifier_with(make: impl Fn() -> Arc<dyn Verifier>, demands: &Demands) -> Vec<Finding> {
    let agent = make();
    let kinds = agent.kinds();
    let mut findings = drive::drive(verifier::Subject(Arc::clone(&agent)), demands).await;
    findings.extend(verifier::unstable_kinds(kinds, agent.kinds(), make().kinds()));
    findings
}

/// Drives a coordinator with the usual demands.
pub async fn coordinator(make: impl Fn() -> Arc<dyn Coordinator>) -> Vec<Finding> {
    coordinator_with(make, &Demands::default()).await
}

/// Drives a coordinator. The suite ends at the first turn without an answer.
pub async fn coordinator_with(make: impl Fn() -> Arc<dyn Coordinator>, demands: &Demands) -> Vec<Finding> {
    drive::drive(coordinator::Subject(make()), demands).await
}
