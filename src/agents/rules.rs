//! Verifier `rules`: evaluates the task's constraints of a chosen set of kinds (the paper's lightweight verifier).
//! Verifier `none` is the same with no kinds: it finds nothing, and no answer is called verified by it.

use async_trait::async_trait;

use super::{AgentError, Verifier};
use crate::protocol::{Score, Trajectory, Verdict};
use crate::tasks::Kinds;

pub struct RulesVerifier {
    kinds: Kinds,
}

impl RulesVerifier {
    pub fn new(kinds: Kinds) -> Self {
        Self { kinds }
    }
}

#[async_trait]
impl Verifier for RulesVerifier {
    fn kinds(&self) -> Kinds {
        self.kinds
    }

    async fn judge(&self, trajectory: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        let spec = trajectory.machine.spec();
        let violations = trajectory.machine.violations(self.kinds);
        if violations.is_empty() {
            return Ok(Verdict::default());
        }
        let broken: Vec<_> = violations.iter(spec).map(|c| format!("{}: {}", c.name, c.meaning)).collect();
        let score = Score::from_tenths(violations.tenths(spec));
        Ok(Verdict { score, violations, feedback: Some(broken.join("; ")) })
    }
}
