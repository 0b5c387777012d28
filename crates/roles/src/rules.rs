//! Verifier `rules`: evaluates the task's constraints of the chosen kinds (the paper's lightweight
//! verifier). Verifier `none` is the same without kinds: it accepts everything, and no answer
//! counts as verified.

use super::{AgentReply, Basis, Verifier};
use prime_bench::tasks::{CheckedKinds, Spec};
use prime_protocol::{Trajectory, Verdict};

/// Evaluates the task's constraints of the chosen kinds. It never fails.
pub struct RulesVerifier {
    kinds: CheckedKinds,
}

impl RulesVerifier {
    /// A verifier that evaluates these kinds; without kinds it accepts every step.
    pub fn new(kinds: impl Into<CheckedKinds>) -> Self {
        Self { kinds: kinds.into() }
    }
}

impl Verifier for RulesVerifier {
    fn basis(&self, task: &Spec) -> Basis {
        Basis::rules(self.kinds.of(task))
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, _: &'a str) -> AgentReply<'a, Verdict> {
        let machine = trajectory.machine.as_ref();
        let kinds = self.kinds.of(machine.spec());
        AgentReply::now(Ok(Verdict::by_rules(machine, kinds).unwrap_or_default()))
    }
}
