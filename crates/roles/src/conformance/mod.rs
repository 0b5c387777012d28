//! A conformance suite: drives any agent over real tasks and reports the rules that it violates.
//!
//! To test your own agent, pass a constructor, inside a Tokio runtime with timers, and assert that
//! there are no findings. Errors are valid answers: an agent may refuse a turn, as long as it
//! answers in time and the error names it. `agents/examples/no_undo.rs` is a complete example.
//!
//! ```
//! use std::sync::Arc;
//! use prime_roles::{ReferenceExecutor, conformance};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let findings = conformance::executor(|| Arc::new(ReferenceExecutor)).await;
//! assert!(findings.is_empty(), "{findings:#?}");
//! # });
//! ```
//!
//! It cannot detect an agent that blocks its thread: that hangs the suite as it would hang a cell.

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
use prime_bench::tasks;

/// The quantitative requirements of the rules.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// Time limit of one turn, including any start-up that it triggers.
    pub timeout: Duration,
    /// Maximum bytes of a proposed line.
    pub line_bytes_max: usize,
    /// Names of violations that a verifier may use besides the task's constraints.
    pub own_violations: Vec<String>,
}

impl Default for Requirements {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            line_bytes_max: 1 << 16,
            own_violations: Vec::new(),
        }
    }
}

/// Drives an executor with the default requirements.
pub async fn executor(make: impl Fn() -> Arc<dyn Executor>) -> Vec<Finding> {
    executor_with(make, &Requirements::default()).await
}

/// Drives an executor. Stops at the first turn without an answer.
pub async fn executor_with(
    make: impl Fn() -> Arc<dyn Executor>,
    requirements: &Requirements,
) -> Vec<Finding> {
    drive::drive(executor::Subject(make()), requirements).await
}

/// Drives a verifier with the default requirements.
pub async fn verifier(make: impl Fn() -> Arc<dyn Verifier>) -> Vec<Finding> {
    verifier_with(make, &Requirements::default()).await
}

/// Drives a verifier, constructed twice to compare what it looks at. Stops at the first turn
/// without an answer.
pub async fn verifier_with(
    make: impl Fn() -> Arc<dyn Verifier>,
    requirements: &Requirements,
) -> Vec<Finding> {
    let agent = make();
    // Any task will do: what a verifier looks at does not change from one turn to the next.
    let task = tasks::all().next().expect("invariant: there are tasks").spec();
    let basis = agent.basis(task);

    let mut findings = drive::drive(verifier::Subject(Arc::clone(&agent)), requirements).await;
    findings.extend(verifier::unstable_basis(basis, agent.basis(task), make().basis(task)));
    findings
}

/// Drives a coordinator with the default requirements.
pub async fn coordinator(make: impl Fn() -> Arc<dyn Coordinator>) -> Vec<Finding> {
    coordinator_with(make, &Requirements::default()).await
}

/// Drives a coordinator. Stops at the first turn without an answer.
pub async fn coordinator_with(
    make: impl Fn() -> Arc<dyn Coordinator>,
    requirements: &Requirements,
) -> Vec<Finding> {
    drive::drive(coordinator::Subject(make()), requirements).await
}
