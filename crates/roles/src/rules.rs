//! Verifier `rules`: evaluates the task's constraints of the chosen kinds (the paper's lightweight
//! verifier). Verifier `none` is the same without kinds: it accepts everything, and no answer
//! counts as verified.

use super::{AgentReply, Basis, Verifier};
use prime_bench::tasks::Kinds;
use prime_protocol::{Trajectory, Verdict};

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
        AgentReply::now(Ok(
            Verdict::by_rules(trajectory.machine.as_ref(), self.kinds).unwrap_or_default()
        ))
    }
}
