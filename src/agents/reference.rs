//! Executor `reference`: the task's own algorithm. It is no model, and every output that it led to says so.

use super::{AgentError, AgentReply, Executor, Failure, Proposal, Sampling};
use prime_protocol::Trajectory;

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
/// Where there is no algorithm.
pub(super) fn next(trajectory: &Trajectory, executor: &str) -> Result<String, AgentError> {
    match trajectory.machine.reference() {
        Some(line) => Ok(line),
        // After wrong steps that were let through, the algorithm may prescribe nothing: that is no line of any grammar.
        None if trajectory.machine.problem().has_reference() => Ok("no next step".to_owned()),
        None => Err(AgentError::new(
            format!("executor `{executor}`"),
            Failure::Unsupported,
            "it follows a task's algorithm, and a client's own problem has none: configure a model",
        )),
    }
}
