//! Cohen's d of paired values.

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use super::left_out::at_least;
use super::noncentral_t::noncentrality;
use super::paired::{differences, vary};
use super::{CONFIDENCE, Computed, Interval, LeftOut, mean, standard_deviation, z_quantile};

/// An effect size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Effect in standard deviations.
    pub d: f64,
    /// The 95 % interval; `None` for effects too large to invert the distribution for.
    pub interval: Option<Interval>,
    /// Number of pairs.
    pub n: usize,
}

/// Cohen's d_z: the mean of the differences `right − left` over their standard deviation, with the
/// interval that the noncentral t distribution gives. It depends on how strongly the pairs are
/// correlated and is not comparable with [`d_pooled`].
///
/// # Errors
/// With fewer than two pairs, and if all differences are equal.
pub fn d_z(left: &[f64], right: &[f64]) -> Computed<Effect> {
    let differences = differences(left, right)?;
    let n = differences.len();
    at_least("pairs", 2, n)?;
    if !vary(&differences) {
        return Err(LeftOut::NoVariation { what: "differences" });
    }

    let d = mean(&differences) / standard_deviation(&differences);
    // t = d · √n has the noncentrality δ · √n, where δ is the true effect.
    let root = (n as f64).sqrt();
    let (df, tail) = ((n - 1) as f64, (1.0 - CONFIDENCE) / 2.0);
    let low = noncentrality(d * root, df, 1.0 - tail);
    let high = noncentrality(d * root, df, tail);
    let interval = low.zip(high).map(|(low, high)| Interval { low: low / root, high: high / root });
    Ok(Effect { d, interval, n })
}

/// Hedges' correction of d for small samples, by the exact factor, with `df` degrees of freedom.
///
/// # Errors
/// With fewer than two degrees of freedom, for which there is no factor.
pub fn hedges(d: f64, df: usize) -> Computed<f64> {
    at_least("degrees of freedom", 2, df)?;
    let df = df as f64;
    Ok(d * (ln_gamma(df / 2.0) - ln_gamma((df - 1.0) / 2.0)).exp() / (df / 2.0).sqrt())
}

/// Cohen's d with the pooled standard deviation of the two samples, the paper's convention, and
/// Bonett's interval for paired samples (2008, eq. 10).
///
/// # Errors
/// With fewer than two pairs, and if neither sample varies.
pub fn d_pooled(left: &[f64], right: &[f64]) -> Computed<Effect> {
    let differences = differences(left, right)?;
    let n = differences.len();
    at_least("pairs", 2, n)?;
    if !vary(left) && !vary(right) {
        return Err(LeftOut::NoVariation { what: "values of each system" });
    }

    let (left, right) = (standard_deviation(left).powi(2), standard_deviation(right).powi(2));
    let pooled = f64::midpoint(left, right);
    let of_differences = standard_deviation(&differences).powi(2);
    let covariance = (left + right - of_differences) / 2.0;

    let d = mean(&differences) / pooled.sqrt();

    let df = (n - 1) as f64;
    let spread = left.powi(2) + right.powi(2) + 2.0 * covariance.powi(2);
    let variance = d * d * spread / (8.0 * df * pooled.powi(2)) + of_differences / (df * pooled);
    Ok(Effect { d, interval: Some(Interval::around(d, z_quantile() * variance.sqrt())), n })
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    const LEFT: [f64; 6] = [0.62, 0.35, 0.71, 0.48, 0.55, 0.80];
    const RIGHT: [f64; 6] = [0.70, 0.52, 0.69, 0.66, 0.71, 0.86];

    #[test]
    fn the_paired_effect_and_its_interval() {
        // scipy.stats.nct, root of cdf(t, 5, delta) = .975 and .025, over sqrt(6).
        let effect = d_z(&LEFT, &RIGHT).unwrap();
        assert_near(effect.d, 1.330_286_782, 1e-8);
        let interval = effect.interval.unwrap();
        assert_near(interval.low, 0.168_982_583_7, 1e-7);
        assert_near(interval.high, 2.432_470_708, 1e-7);
        assert_near(hedges(effect.d, 5).unwrap(), 1.118_436_859, 1e-8);
        assert!(hedges(1.0, 1).is_err());
    }

    #[test]
    fn the_pooled_effect_has_bonetts_interval() {
        // Bonett (2008), computed with numpy.
        let effect = d_pooled(&LEFT, &RIGHT).unwrap();
        assert_near(effect.d, 0.762_251_709_1, 1e-8);
        let interval = effect.interval.unwrap();
        assert_near(interval.low, 0.085_793_423_2, 1e-7);
        assert_near(interval.high, 1.438_709_995, 1e-7);
    }

    #[test]
    fn effects_without_spread_are_left_out() {
        assert!(d_z(&[0.1, 0.2], &[0.2, 0.3]).is_err() && d_z(&[1.0], &[2.0]).is_err());
        assert!(d_pooled(&[1.0, 1.0], &[2.0, 2.0]).is_err());
        // An effect of 63 standard deviations has no interval.
        let left = vec![0.0; 100];
        let right: Vec<f64> = (0..100).map(|i| 100.0 + f64::from(i % 5)).collect();
        let effect = d_z(&left, &right).unwrap();
        assert!(effect.d > 60.0 && effect.interval.is_none(), "{effect:?}");
    }
}
