//! Executor `reference`: the task's own algorithm. It is not a model; every result says so.

use super::{AgentError, AgentReply, Executor, Failure, Proposal, Sampling};
use prime_protocol::Trajectory;

/// Proposes the line of the task's own algorithm. Fails on a problem that has none.
pub struct ReferenceExecutor;

impl Executor for ReferenceExecutor {
    fn propose<'a>(&'a self, trajectory: &'a Trajectory, _: Sampling) -> AgentReply<'a, Proposal> {
        let line = next(trajectory, "reference");
        AgentReply::now(line.map(|line| Proposal { line, ..Proposal::default() }))
    }
}

/// The next line of the task's algorithm.
///
/// # Errors
/// The problem has no reference algorithm.
pub(super) fn next(trajectory: &Trajectory, executor: &str) -> Result<String, AgentError> {
    match trajectory.machine.reference() {
        Some(line) => Ok(line),
        // After accepted wrong steps the algorithm may prescribe nothing. This line is in no task's
        // grammar.
        None if trajectory.machine.problem().has_reference() => Ok("no next step".to_owned()),
        None => Err(AgentError::new(
            format!("executor `{executor}`"),
            Failure::Unsupported,
            "a client's problem has no reference algorithm: configure a model",
        )),
    }
}
