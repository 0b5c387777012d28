//! Verifiers: verdicts, and what they say that they check.

use std::sync::Arc;

use async_trait::async_trait;

use super::finding::{Finding, Findings, Rule};
use super::turns::Turn;
use super::{Demands, drive};
use crate::agents::{AgentError, Verifier};
use prime_bench::tasks::Kinds;
use prime_protocol::{Role, Score, Verdict};

pub(super) struct Subject(pub Arc<dyn Verifier>);

#[async_trait]
impl drive::Subject for Subject {
    const ROLE: Role = Role::Verifier;
    type Answer = Verdict;

    async fn turn(&self, turn: &Turn) -> Result<Verdict, AgentError> {
        self.0.judge(&turn.trajectory, &turn.line).await
    }

    fn check(turn: &Turn, verdict: &Verdict, demands: &Demands, findings: &mut Findings) {
        let spec = turn.trajectory.machine.spec();
        let is_known = |name: &str| {
            let own = demands.own_violations.iter().any(|own| own == name);
            own || spec.constraints.iter().any(|constraint| constraint.name == name)
        };
        if let Some(name) = verdict.violations.iter().find(|name| !is_known(name)) {
            let detail = format!("{name:?} is no constraint of {}; if it is meant, demand it", spec.slug);
            findings.note(Rule::KnownViolation, &turn.name, detail);
        }
        if verdict.score == Score::ZERO && !verdict.violations.is_empty() {
            findings.note(Rule::ClearVerdict, &turn.name, format!("V = 0 with {:?}", verdict.violations));
        }
        if let Some(logprob) = verdict.logprob.filter(|logprob| !logprob.is_finite() || *logprob > 0.0) {
            findings.note(Rule::Logprob, &turn.name, format!("{logprob} is no ln p"));
        }
    }
}

/// Kinds before and after all turns, and of another one made.
pub(super) fn unstable_kinds(before: Kinds, after: Kinds, another: Kinds) -> Option<Finding> {
    let shown = |kinds: Kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let (rule, turn) = (Rule::StableKinds, "all turns".to_owned());
    (before != after || before != another).then(|| Finding {
        rule,
        turn,
        detail: format!("[{}] first, [{}] later, [{}] of another one", shown(before), shown(after), shown(another)),
    })
}
