//! Which steps of a run wait for approval.

use serde::{Deserialize, Serialize};
use serde_json::json;

use prime_runtime::Event;
use prime_settings::{ApprovalRule, ApproveElse, Run};

/// The rule of a run, as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalPolicy {
    /// Which steps wait: `flagged`, `every N steps`, or a CEL expression over `step`.
    pub rule: String,
    /// Milliseconds within which a step must be decided.
    pub within_ms: u64,
    /// What happens then.
    pub otherwise: ApproveElse,
}

impl ApprovalPolicy {
    /// The configured rule; `None` if no step waits.
    pub fn of(run: &Run) -> Option<Self> {
        let rule = run.approve.trim();
        (!rule.is_empty()).then(|| Self {
            rule: rule.to_owned(),
            within_ms: run.approve_within_ms,
            otherwise: run.approve_else,
        })
    }
}

/// Decides which steps wait.
pub struct Gate(Option<ApprovalRule>);

impl Gate {
    /// The gate of a rule. Where this version cannot read it, every step waits: a person can tell.
    pub fn new(policy: &ApprovalPolicy) -> Self {
        let rule = ApprovalRule::read(&policy.rule).inspect_err(|reason| {
            tracing::error!(
                rule = policy.rule,
                reason,
                "every step waits for approval: the rule cannot be read"
            );
        });
        Self(rule.ok().flatten())
    }

    /// True if this step, which is about to be committed, waits.
    pub fn holds(&self, step: &Event<'_>) -> bool {
        let Event::Step { id, depth, proposal, verdict, usage, .. } = step else { return false };
        match &self.0 {
            None => true,
            Some(ApprovalRule::Flagged) => verdict.needs_review,
            Some(ApprovalRule::EverySteps(every)) => (*depth as u64 + 1).is_multiple_of(*every),
            Some(ApprovalRule::When(condition)) => {
                let step = json!({
                    "round": id.round,
                    "trajectory": id.trajectory,
                    "depth": depth,
                    "action": proposal.line,
                    "derivation": proposal.derivation,
                    "score": verdict.score.value(),
                    "violations": verdict.violations,
                    "flagged": verdict.needs_review,
                    "tokens": usage.total(),
                });
                // Fails towards the person: what cannot be decided by rule is not let through.
                condition.holds(&step).unwrap_or(true)
            }
        }
    }
}
