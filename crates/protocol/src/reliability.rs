//! First-to-ahead-by-k voting on a step: the k that a target reliability needs, and the error bound
//! of a vote.
//!
//! Assumes that samples are independent and right with probability p, and that wrong samples agree
//! (the worst case). Then the right action is the first to be ahead by k with probability
//! p^k / (p^k + q^k), q = 1 − p: the gambler's ruin.

use serde::{Deserialize, Serialize};

/// Parameters of the vote on each step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// Votes by which an action must be ahead of every other, at least 1.
    pub k: u32,
    /// Samples at one state after which the leader is chosen regardless; if there is none, the
    /// round ends.
    pub samples_max: u32,
    /// A proposal with more characters, derivation included, is discarded.
    pub characters_max: u32,
    /// Measured probability that a sample is right; 0 = unknown.
    pub step_accuracy: f64,
}

/// The votes on the steps of a run's answer, or of its last round without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepVotes {
    /// Votes by which an action had to be ahead.
    pub k: u32,
    /// Steps that were voted on.
    pub steps: u64,
    /// Proposals, discarded ones included.
    pub samples: u64,
    /// Proposals discarded before the vote (red flags): no action, not applicable, too long, or
    /// rejected by the coordinator.
    pub discarded: u64,
    /// Votes for the chosen actions.
    pub votes: u64,
    /// The smallest lead of a chosen action.
    pub margin_min: u32,
    /// Steps chosen with a lead below k, because `samples_max` was reached.
    pub undecided: u64,
    /// Bound on the probability that any step is wrong: Σ q^m / (p^m + q^m) over the leads m, at
    /// most 1. It holds if samples are independent and right with the given probability p. Null if
    /// p is unknown.
    pub error_bound: Option<f64>,
}

/// The probability that the wrong action is first ahead by `m` votes, if a sample is right with
/// probability `p`.
pub fn wrong_at(p: f64, m: u32) -> f64 {
    let odds = ((1.0 - p) / p).powf(f64::from(m));
    if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
}

/// The smallest k with which all of `steps` steps are right with probability `reliability` or more,
/// if a sample is right with probability `p`. `None` if p is at most one half: then no k suffices.
pub fn least_k(p: f64, reliability: f64, steps: u64) -> Option<u32> {
    if p <= 0.5 {
        return None;
    }
    if p >= 1.0 {
        return Some(1);
    }

    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let steps = steps.max(1) as f64;

    // The failure probability allowed per step: 1 − t^(1/s), without cancellation.
    let allowed = -(reliability.ln() / steps).exp_m1();

    let k = ((1.0 - allowed) / allowed).ln() / (p / (1.0 - p)).ln();

    // Rounding errors must not push an exact k to the next integer.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let least = (k - 1e-9).ceil().clamp(1.0, 1e6) as u32;

    Some(least)
}

impl StepVotes {
    /// Counts a step that was chosen with this lead and this many votes.
    pub fn taken(&mut self, rule: &Ahead, lead: u32, votes: u32) {
        self.margin_min = if self.steps == 0 { lead } else { self.margin_min.min(lead) };
        self.steps += 1;
        self.votes += u64::from(votes);
        self.undecided += u64::from(lead < rule.k);

        if rule.step_accuracy > 0.0 {
            let bound = self.error_bound.unwrap_or(0.0) + wrong_at(rule.step_accuracy, lead);
            self.error_bound = Some(bound.min(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_the_least_that_reaches_the_target() {
        for p in [0.55, 0.7, 0.9, 0.99, 0.999] {
            for reliability in [0.5, 0.9, 0.99, 0.999_9] {
                for steps in [1, 10, 1_000, 1_048_575] {
                    let k = least_k(p, reliability, steps).expect("p is above one half");
                    let all_right = |k: u32| (steps as f64 * (-wrong_at(p, k)).ln_1p()).exp();
                    assert!(
                        all_right(k) >= reliability * (1.0 - 1e-9),
                        "{p} {reliability} {steps}: {k}"
                    );
                    assert!(
                        k == 1 || all_right(k - 1) < reliability,
                        "{p} {reliability} {steps}: {k} is too many"
                    );
                }
            }
        }

        // MAKER's example: twenty discs, 2^20 − 1 steps, a step accuracy of 99.8 %: k = 3 gives
        // above 95 %.
        assert_eq!(least_k(0.998, 0.95, 1_048_575), Some(3));
        assert_eq!(
            (least_k(0.5, 0.9, 1), least_k(0.3, 0.9, 1), least_k(1.0, 0.9, 1)),
            (None, None, Some(1))
        );
    }

    #[test]
    fn the_bound_adds_up_what_each_step_may_be_wrong_with() {
        let rule = Ahead { k: 2, samples_max: 9, characters_max: 99, step_accuracy: 0.8 };
        let mut votes = StepVotes::default();
        votes.taken(&rule, 2, 2);
        votes.taken(&rule, 1, 3);

        // 0.04 / (0.64 + 0.04) and 0.2 / (0.8 + 0.2)
        let wanted = 0.04 / 0.68 + 0.2;
        assert!((votes.error_bound.expect("p is known") - wanted).abs() < 1e-12);
        assert_eq!((votes.steps, votes.votes, votes.margin_min, votes.undecided), (2, 5, 1, 1));

        let mut unknown = StepVotes::default();
        unknown.taken(&Ahead { step_accuracy: 0.0, ..rule }, 2, 2);
        assert_eq!(unknown.error_bound, None);
    }
}
