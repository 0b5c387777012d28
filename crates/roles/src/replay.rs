//! Executor `replay`: proposes given lines in order and starts over after the last. It is not a
//! model; every result says so. For deterministic tests and for trying out checks.

use super::{AgentReply, Executor, Proposal, Sampling};
use prime_protocol::Trajectory;

/// Proposes given lines in order, and starts over after the last.
pub struct ReplayExecutor {
    /// The lines; at least one.
    lines: Vec<String>,
}

impl ReplayExecutor {
    /// `lines` must not be empty.
    pub fn new(lines: Vec<String>) -> Self {
        Self { lines }
    }
}

impl Executor for ReplayExecutor {
    fn propose<'a>(&'a self, trajectory: &'a Trajectory, _: Sampling) -> AgentReply<'a, Proposal> {
        let at = trajectory.counts.proposals % self.lines.len() as u64;
        let line =
            self.lines[usize::try_from(at).expect("invariant: an index into a list")].clone();
        AgentReply::now(Ok(Proposal { line, ..Proposal::default() }))
    }
}
