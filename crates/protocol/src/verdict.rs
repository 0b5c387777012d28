//! A verifier's verdict on a step, and what models spend.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::cost::{Cost, Price};
use super::score::Score;
use prime_bench::tasks::{Kinds, Machine, Violations};

/// A verifier's verdict on a proposed step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// V(s'); zero if nothing was checked.
    pub score: Score,
    /// The names of the broken constraints, if the verifier names them.
    pub violations: Vec<Cow<'static, str>>,
    /// Shown to the executor with its next proposal.
    pub feedback: Option<String>,
    /// ln p of the verdict, if a model gave it as a single token.
    pub logprob: Option<f32>,
    /// The opinion of each verifier of an ensemble.
    pub opinions: Vec<Opinion>,
    /// True if the verifiers disagree so much that a person should review the step.
    pub needs_review: bool,
    /// Its basis, where that is less than the usual basis of its verifier's verdicts.
    pub basis: Option<Basis>,
    /// Tokens that a model spent on the verdict.
    pub usage: Usage,
}

impl Verdict {
    /// The verdict on the machine's candidate if it breaks constraints of these kinds: V is the sum
    /// of their severities (the paper's lightweight verifier).
    #[inline]
    pub fn by_rules(machine: &dyn Machine, kinds: Kinds) -> Option<Self> {
        let violations = machine.violations(kinds);
        (!violations.is_empty()).then(|| Self::on(machine, violations))
    }

    #[cold]
    fn on(machine: &dyn Machine, violations: Violations) -> Self {
        let broken = machine.broken(violations);

        let feedback: Vec<_> =
            broken.iter().map(|c| format!("{}: {}", c.name, c.meaning)).collect();

        Self {
            score: Score::from_tenths(broken.iter().map(|c| c.severity.tenths()).sum()),
            violations: broken.into_iter().map(|c| c.name).collect(),
            feedback: Some(feedback.join("; ")),
            ..Self::default()
        }
    }
}

/// The score of one verifier of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Opinion {
    /// The verifier's name in the configuration.
    pub verifier: String,
    /// `null` if it gave no verdict.
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>, minimum = 0.0))]
    pub score: Option<Score>,
}

/// Tokens spent, and the money that they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Tokens of prompts.
    pub prompt: u64,
    /// Generated tokens.
    pub completion: u64,
    /// Tokens of `prompt` that a model had computed before, where that is known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tokens of `completion` that a model spent on thinking, where that is known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// What those of them cost whose model has a price, in the currency of the prices; left out if
    /// no model has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>, minimum = 0.0))]
    pub cost: Option<Cost>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Tokens without further details.
    pub const fn new(prompt: u64, completion: u64) -> Self {
        Self { prompt, completion, cached: 0, reasoning: 0, cost: None }
    }

    /// Adds the counts of another.
    #[inline]
    pub fn add(&mut self, other: Self) {
        // A server may claim any number.
        self.prompt = self.prompt.saturating_add(other.prompt);
        self.completion = self.completion.saturating_add(other.completion);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.pay(other.cost);
    }

    /// Adds a cost. That of tokens without a price is unknown, and changes nothing.
    #[inline]
    pub fn pay(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or_default().plus(cost));
        }
    }

    /// The same tokens at this price.
    #[must_use]
    pub fn at(self, price: Price) -> Self {
        Self { cost: Some(price.of(self)), ..self }
    }

    /// Prompt and completion tokens together.
    pub fn total(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}
