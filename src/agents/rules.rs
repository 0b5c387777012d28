//! Verifier `rules`: evaluates the task's constraints of the chosen kinds (the paper's lightweight verifier). Verifier
//! `none` is the same without kinds: it accepts everything, and no answer counts as verified.

use super::{AgentReply, Basis, Verifier};
use prime_bench::tasks::{Kinds, Machine};
use prime_protocol::{Score, Trajectory, Verdict};

pub struct RulesVerifier {
    kinds: Kinds,
}

impl RulesVerifier {
    pub fn new(kinds: Kinds) -> Self {
        Self { kinds }
    }
}

impl Verifier for RulesVerifier {
    fn basis(&self) -> Basis {
        Basis::rules(self.kinds)
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, _: &'a str) -> AgentReply<'a, Verdict> {
        AgentReply::now(Ok(violated(trajectory.machine.as_ref(), self.kinds).unwrap_or_default()))
    }
}

/// The verdict on the candidate if it violates constraints of these kinds.
pub(super) fn violated(machine: &dyn Machine, kinds: Kinds) -> Option<Verdict> {
    let violations = machine.violations(kinds);
    if violations.is_empty() {
        return None;
    }
    let broken = machine.broken(violations);
    let feedback: Vec<_> = broken.iter().map(|c| format!("{}: {}", c.name, c.meaning)).collect();
    Some(Verdict {
        score: Score::from_tenths(broken.iter().map(|c| c.severity.tenths()).sum()),
        violations: broken.into_iter().map(|c| c.name).collect(),
        feedback: Some(feedback.join("; ")),
        ..Verdict::default()
    })
}
