//! Statistics of proportions, differences and fits, as pure functions. A statistic that cannot be
//! computed from the data is not a number but a reason ([`LeftOut`]). All intervals are at 95 %,
//! all tests two-sided.

mod bootstrap;
mod effect_size;
mod fit;
mod left_out;
mod majority;
mod mcnemar;
mod multiple_tests;
mod noncentral_t;
mod paired;
mod power;
mod proportion;
mod quantile;
mod resample;
mod root;
mod standard_error;
mod wilcoxon;

pub use bootstrap::{Bca, RESAMPLES, bca_of_means, two_stage_means};
pub use effect_size::{Effect, d_pooled, d_z, hedges};
pub use fit::{
    Correlation, Line, OffsetPower, line, log2_law, offset_power_law, pearson, power_law,
};
pub use left_out::{Computed, LeftOut};
pub use majority::{majority_at, pass_at};
pub use mcnemar::{discordant_needed, mcnemar, tango};
pub use multiple_tests::{bonferroni, holm};
pub use paired::{PairedT, UNMEASURED_SHARE_MAX, paired_clustered, paired_t};
pub use power::least_detectable_difference;
pub use prime_bench::interval::Proportion;
pub use proportion::clopper_pearson;
pub use quantile::{FiveNumbers, quantile};
pub use standard_error::{
    Estimate, Repeats, clustered, mean, repeats, standard_deviation, stratified, stratified_over,
};
pub use wilcoxon::{SignedRank, wilcoxon};

use serde::Serialize;

/// Confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Significance level of every test.
pub const ALPHA: f64 = 0.05;

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// `estimate ± half`.
    pub fn around(estimate: f64, half: f64) -> Self {
        Self { low: estimate - half, high: estimate + half }
    }

    /// True if the value lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval with its ends in order, for factors that may be negative.
    #[must_use]
    pub fn ordered(self) -> Self {
        Self { low: self.low.min(self.high), high: self.low.max(self.high) }
    }

    /// Multiplies both ends, for changes of unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }
}

/// The two-sided quantile of the normal distribution: 1.96 at 95 %.
fn z_quantile() -> f64 {
    use statrs::distribution::{ContinuousCDF as _, Normal};
    Normal::standard().inverse_cdf(f64::midpoint(1.0, CONFIDENCE))
}

/// The two-sided quantile of Student's t with `df` > 0 degrees of freedom.
fn t_quantile(df: f64) -> f64 {
    student(df).inverse_cdf_at(f64::midpoint(1.0, CONFIDENCE))
}

/// Student's t distribution with `df` > 0 degrees of freedom.
struct Student(statrs::distribution::StudentsT);

fn student(df: f64) -> Student {
    Student(
        statrs::distribution::StudentsT::new(0.0, 1.0, df)
            .expect("invariant: positive degrees of freedom"),
    )
}

impl Student {
    fn inverse_cdf_at(&self, p: f64) -> f64 {
        use statrs::distribution::ContinuousCDF as _;
        self.0.inverse_cdf(p)
    }

    /// Two-sided p of a statistic; exact in the tail, where 1 − cdf would cancel.
    fn two_sided(&self, t: f64) -> f64 {
        use statrs::distribution::ContinuousCDF as _;
        (2.0 * self.0.sf(t.abs())).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    /// Asserts that values agree within an absolute tolerance.
    pub fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
    }

    #[test]
    fn the_quantiles_are_those_of_tables() {
        // R: qnorm(.975), qt(.975, 5), qt(.975, 1).
        assert_near(super::z_quantile(), 1.959_963_984_540_054, 1e-12);
        assert_near(super::t_quantile(5.0), 2.570_581_835_636_314, 1e-8);
        assert_near(super::t_quantile(1.0), 12.706_204_736_432_1, 1e-6);
    }
}
