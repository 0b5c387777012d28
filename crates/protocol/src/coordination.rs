//! The coordinator's threshold policy (eq. 3 of the paper, with its gaps closed; see
//! docs/paper-decisions.md).

use serde::{Deserialize, Serialize};

use super::score::Score;

/// What happens to a judged step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The step is committed.
    Proceed,
    /// The executor proposes again at the same state, with the violations as feedback.
    Retry,
    /// The step is dropped, and its action excluded at this state.
    Backtrack,
}

/// τ_soft and τ_hard, with τ_soft ≤ τ_hard, and the retries allowed at one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// τ_soft: a step with at most this score is tolerated after its last retry.
    pub soft: Score,
    /// τ_hard: a step with a higher score backtracks at once.
    pub hard: Score,
    /// Retries at one state.
    pub retries_max: u32,
}

impl Thresholds {
    /// V = 0 proceeds; V > τ_hard backtracks at once; anything between is retried up to
    /// `retries_max` times, after which V ≤ τ_soft is tolerated and the rest backtracks.
    pub fn decide(&self, score: Score, retries_here: u32) -> Decision {
        if score == Score::ZERO {
            Decision::Proceed
        } else if score > self.hard {
            Decision::Backtrack
        } else if retries_here < self.retries_max {
            Decision::Retry
        } else if score <= self.soft {
            Decision::Proceed
        } else {
            Decision::Backtrack
        }
    }
}

/// Thresholds that follow the rejection rate. Above the target rate they rise, so that small
/// violations are tolerated; below it they fall. A pure function of a trajectory's own counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// The thresholds at the target.
    base: Thresholds,
    /// Target share of rejected proposals, 0 to 1.
    target: f64,
    /// Change of the thresholds when the rate changes from 0 to 1.
    gain: f64,
    /// Pseudo-count: virtual proposals at the target rate before the first one. A larger count
    /// slows the change.
    smoothing: f64,
    /// Lowest and highest threshold.
    bounds: (Score, Score),
}

impl Adaptive {
    /// # Errors
    /// When a number is out of range: `target` 0 to 1, `gain` 0 or more, `smoothing` above 0, and
    /// lower bound ≤ τ_soft ≤ τ_hard ≤ upper bound.
    pub fn new(
        base: Thresholds,
        target: f64,
        gain: f64,
        smoothing: f64,
        bounds: (Score, Score),
    ) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&target) {
            return Err(format!("the target rate of rejections is {target}, set it to 0..=1"));
        }
        if !(gain >= 0.0 && gain.is_finite()) {
            return Err(format!("the gain is {gain}, set it to 0 or more"));
        }
        if !(smoothing > 0.0 && smoothing.is_finite()) {
            return Err(format!("the smoothing is {smoothing} proposals, set it above 0"));
        }

        let (lowest, highest) = bounds;
        if !(lowest <= base.soft && base.soft <= base.hard && base.hard <= highest) {
            return Err(format!(
                "the thresholds must keep {lowest} (lower bound) ≤ τ_soft ≤ τ_hard ≤ {highest} (upper bound), and are \
                 {} and {}",
                base.soft, base.hard
            ));
        }

        Ok(Self { base, target, gain, smoothing, bounds })
    }

    /// The thresholds after `rejections` (retries and backtracks) of `proposals`.
    pub fn thresholds(&self, rejections: u64, proposals: u64) -> Thresholds {
        // The smoothed rate; `max` keeps it at most 1, whatever the caller counts.
        let rate = (rejections as f64 + self.smoothing * self.target)
            / (proposals.max(rejections) as f64 + self.smoothing);

        let shift = self.gain * (rate - self.target);

        let (lowest, highest) = self.bounds;

        let moved = |tau: Score| {
            let moved = (tau.value() + shift).clamp(lowest.value(), highest.value());
            Score::from_value(moved).expect("invariant: bounds are scores")
        };

        Thresholds {
            soft: moved(self.base.soft),
            hard: moved(self.base.hard),
            retries_max: self.base.retries_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tenths(tenths: u32) -> Score {
        Score::from_tenths(tenths)
    }

    const BASE: Thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(6), retries_max: 2 };

    proptest! {
        #[test]
        fn adaptive_thresholds_are_bounded_ordered_and_rise_with_the_rate(
            target in 0.0..=1.0_f64,
            gain in 0.0..10.0_f64,
            smoothing in 0.1..100.0_f64,
            proposals in 0_u64..100_000,
            share in 0.0..=1.0_f64,
        ) {

            let bounds = (tenths(1), tenths(8));

            let policy = Adaptive::new(BASE, target, gain, smoothing, bounds).expect("in range");
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
            let rejections = (share * proposals as f64) as u64;

            let here = policy.thresholds(rejections, proposals);
            prop_assert!(bounds.0 <= here.soft && here.soft <= here.hard && here.hard <= bounds.1);
            prop_assert_eq!(here.retries_max, 2);

            let more = policy.thresholds((rejections + 1).min(proposals), proposals);
            prop_assert!(here.soft <= more.soft && here.hard <= more.hard, "more rejections, higher thresholds");

            let later = policy.thresholds(rejections, proposals + 1);
            prop_assert!(later.soft <= here.soft && later.hard <= here.hard, "a clean step more, lower thresholds");
        }

        #[test]
        fn at_its_target_the_adaptive_policy_is_the_threshold_policy(
            proposals in 1_u64..1_000, quarter in 0_u64..=4, gain in 0.0..10.0_f64, tenth in 0_u32..20, retries in 0_u32..4,
        ) {

            let bounds = (Score::ZERO, tenths(30));
            let policy = Adaptive::new(BASE, quarter as f64 / 4.0, gain, 8.0, bounds).expect("in range");

            let thresholds = policy.thresholds(quarter * proposals, 4 * proposals);
            prop_assert_eq!(thresholds, BASE);
            prop_assert_eq!(policy.thresholds(0, 0), BASE, "before the first proposal");
            prop_assert_eq!(thresholds.decide(tenths(tenth), retries), BASE.decide(tenths(tenth), retries));
        }
    }

    #[test]
    fn adaptive_numbers_out_of_range_are_refused() {
        let bounds = (tenths(1), tenths(8));
        for (target, gain, smoothing, bounds, part) in [
            (1.1, 1.0, 8.0, bounds, "target"),
            (f64::NAN, 1.0, 8.0, bounds, "target"),
            (0.1, -1.0, 8.0, bounds, "gain"),
            (0.1, f64::INFINITY, 8.0, bounds, "gain"),
            (0.1, 1.0, 0.0, bounds, "smoothing"),
            (0.1, 1.0, 8.0, (tenths(4), tenths(8)), "lower bound"),
            (0.1, 1.0, 8.0, (tenths(1), tenths(5)), "upper bound"),
        ] {
            let error = Adaptive::new(BASE, target, gain, smoothing, bounds).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn every_score_has_a_decision() {
        let score = |value| Score::from_value(value).expect("a score");
        let thresholds = Thresholds { soft: score(0.3), hard: score(0.8), retries_max: 2 };

        let rows = [
            (0.0, 0, Decision::Proceed),
            (0.2, 0, Decision::Retry),
            (0.3, 1, Decision::Retry),
            (0.3, 2, Decision::Proceed),
            (0.6, 1, Decision::Retry),
            (0.6, 2, Decision::Backtrack),
            (0.8, 2, Decision::Backtrack),
            (0.801, 0, Decision::Backtrack),
            (3.0, 0, Decision::Backtrack),
        ];

        for (value, retries, decision) in rows {
            assert_eq!(
                thresholds.decide(score(value), retries),
                decision,
                "V = {value} after {retries} retries"
            );
        }
    }
}
