//! Rules of verifiers: verdicts and kinds.

use std::sync::Arc;

use async_trait::async_trait;

use super::finding::{Finding, Findings, Rule};
use super::turns::Turn;
use super::{Requirements, drive};
use crate::{AgentError, Basis, Verifier};
use prime_protocol::{Role, Score, Verdict};

pub(super) struct Subject(pub Arc<dyn Verifier>);

#[async_trait]
impl drive::Subject for Subject {
    const ROLE: Role = Role::Verifier;
    type Answer = Verdict;

    async fn turn(&self, turn: &Turn) -> Result<Verdict, AgentError> {
        self.0.judge(&turn.trajectory, &turn.line).await
    }

    fn check(turn: &Turn, verdict: &Verdict, requirements: &Requirements, findings: &mut Findings) {
        let spec = turn.trajectory.machine.spec();
        let is_known = |name: &str| {
            let own = requirements.own_violations.iter().any(|own| own == name);
            own || spec.constraints.iter().any(|constraint| constraint.name == name)
        };

        if let Some(name) = verdict.violations.iter().find(|name| !is_known(name)) {
            let detail = format!(
                "{name:?} is not a constraint of {}; if intended, add it to `own_violations`",
                spec.slug
            );
            findings.note(Rule::KnownViolation, &turn.name, detail);
        }

        if verdict.score == Score::ZERO && !verdict.violations.is_empty() {
            findings.note(
                Rule::ClearVerdict,
                &turn.name,
                format!("V = 0 with {:?}", verdict.violations),
            );
        }

        if let Some(logprob) =
            verdict.logprob.filter(|logprob| !logprob.is_finite() || *logprob > 0.0)
        {
            findings.note(Rule::Logprob, &turn.name, format!("{logprob} is not a log-probability"));
        }
    }
}

/// Compares what it looks at before and after all turns, and with a second agent.
pub(super) fn unstable_basis(before: Basis, after: Basis, another: Basis) -> Option<Finding> {
    let shown =
        |basis: Basis| basis.kinds().iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");

    let (rule, turn) = (Rule::StableKinds, "all turns".to_owned());
    (before != after || before != another).then(|| Finding {
        rule,
        turn,
        detail: format!(
            "[{}] first, [{}] later, [{}] for a second agent",
            shown(before),
            shown(after),
            shown(another)
        ),
    })
}
