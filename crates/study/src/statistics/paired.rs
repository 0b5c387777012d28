//! Two systems on the same instances or tasks.

use serde::Serialize;
use statrs::stats_tests::ttest_onesample::ttest_onesample;
use statrs::stats_tests::{Alternative, NaNPolicy};

use super::left_out::{at_least, finite};
use super::{
    Computed, Estimate, Interval, LeftOut, clustered, mean, standard_deviation, student, t_quantile,
};

/// Largest share of dropped pairs with which a test is made: values are rarely missing at random. A
/// pair is dropped if one side was not measured.
pub const UNMEASURED_SHARE_MAX: f64 = 0.05;

/// A paired t test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairedT {
    /// Number of pairs.
    pub n: usize,
    /// Student's t.
    pub t: f64,
    /// Degrees of freedom, n − 1.
    pub degrees_of_freedom: f64,
    /// Two-sided p.
    pub p: f64,
    /// Mean of the differences.
    pub mean: f64,
    /// The 95 % interval of the mean difference.
    pub interval: Interval,
}

/// Differences `right − left` of paired samples.
pub(super) fn differences(left: &[f64], right: &[f64]) -> Computed<Vec<f64>> {
    if left.len() != right.len() {
        return Err(LeftOut::NotPaired { left: left.len(), right: right.len() });
    }
    finite(left.iter().chain(right))?;
    Ok(left.iter().zip(right).map(|(left, right)| right - left).collect())
}

/// True if values differ by more than rounding.
pub(super) fn vary(values: &[f64]) -> bool {
    let scale = values.iter().fold(0.0_f64, |max, value| max.max(value.abs()));
    standard_deviation(values) > 1e-12 * scale
}

/// The paired t test of `right − left`.
///
/// # Errors
/// With fewer than two pairs, and if all differences are equal: t would be infinite.
pub fn paired_t(left: &[f64], right: &[f64]) -> Computed<PairedT> {
    let differences = differences(left, right)?;
    let n = differences.len();
    at_least("pairs", 2, n)?;
    if !vary(&differences) {
        return Err(LeftOut::NoVariation { what: "differences" });
    }

    let mean = mean(&differences);
    let half = t_quantile((n - 1) as f64) * standard_deviation(&differences) / (n as f64).sqrt();
    let (t, _) = ttest_onesample(differences, 0.0, Alternative::TwoSided, NaNPolicy::Error)
        .expect("invariant: two finite differences or more");

    let degrees_of_freedom = (n - 1) as f64;
    // The library's p is 1 − cdf, which is 0 far out.
    let p = student(degrees_of_freedom).two_sided(t);

    Ok(PairedT { n, t, degrees_of_freedom, p, mean, interval: Interval::around(mean, half) })
}

/// The mean difference `right − left` over instances, with a standard error clustered by task
/// (Miller, section 4).
///
/// # Errors
/// If the clusters cannot be paired, and as [`clustered`].
pub fn paired_clustered(left: &[Vec<f64>], right: &[Vec<f64>]) -> Computed<Estimate> {
    if left.len() != right.len() {
        return Err(LeftOut::NotPaired { left: left.len(), right: right.len() });
    }

    let all: Vec<Vec<f64>> = left
        .iter()
        .zip(right)
        .map(|(left, right)| differences(left, right))
        .collect::<Result<_, _>>()?;

    clustered(&all)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    pub const LEFT: [f64; 6] = [0.62, 0.35, 0.71, 0.48, 0.55, 0.80];
    pub const RIGHT: [f64; 6] = [0.70, 0.52, 0.69, 0.66, 0.71, 0.86];

    #[test]
    fn the_t_test_is_scipys() {
        // scipy.stats.ttest_rel(b, a) and its confidence_interval().
        let test = paired_t(&LEFT, &RIGHT).unwrap();
        assert_near(test.t, 3.258_523_827, 1e-8);
        assert_near(test.p, 0.022_482_407_4, 1e-8);
        assert_near(test.interval.low, 0.022_167_678_6, 1e-8);
        assert_near(test.interval.high, 0.187_832_321_4, 1e-8);
        assert_eq!((test.n, test.degrees_of_freedom), (6, 5.0));
    }

    #[test]
    fn p_stays_above_zero_far_out() {
        // scipy: 2 * stats.t.sf(t, 9) is about 1e-19 for t = 316.
        let left: Vec<f64> = (0..10).map(f64::from).collect();
        let right: Vec<f64> =
            (0..10).map(|i| f64::from(i) + if i % 2 == 0 { 1000.0 } else { 1020.0 }).collect();
        let test = paired_t(&left, &right).unwrap();
        assert!(test.p > 0.0 && test.p < 1e-15, "{test:?}");
    }

    #[test]
    fn differences_are_clustered() {
        let y = [vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 1.0, 0.0], vec![1.0, 1.0]];
        let a = [vec![1.0, 0.0, 1.0], vec![0.0, 1.0, 0.0, 0.0], vec![1.0, 0.0]];
        // statsmodels without the small-sample factor: 0.1062015465.
        let estimate = paired_clustered(&a, &y).unwrap();
        assert_near(estimate.mean, 0.111_111_111_1, 1e-9);
        assert_near(estimate.standard_error * (2.0_f64 / 3.0).sqrt(), 0.106_201_546_5, 1e-9);
        assert!(matches!(
            paired_clustered(&a, &y[..2]),
            Err(LeftOut::NotPaired { left: 3, right: 2 })
        ));
    }

    #[test]
    fn tests_without_enough_data_are_left_out() {
        assert_eq!(
            paired_t(&[0.5], &[0.7]),
            Err(LeftOut::TooFew { what: "pairs", need: 2, have: 1 })
        );
        // Equal differences up to rounding: 0.1 + 0.2 is not 0.3.
        assert_eq!(
            paired_t(&[0.1, 0.2, 0.7], &[0.3, 0.4, 0.9]),
            Err(LeftOut::NoVariation { what: "differences" })
        );
        assert_eq!(paired_t(&[0.1, 0.2], &[0.3]), Err(LeftOut::NotPaired { left: 2, right: 1 }));
    }
}
