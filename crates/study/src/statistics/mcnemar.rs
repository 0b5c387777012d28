//! Right and wrong answers of two systems to the same instances.

use statrs::distribution::{Binomial, DiscreteCDF as _};

use super::left_out::at_least;
use super::root::bisect;
use super::{ALPHA, Computed, Interval, z_quantile};

/// The fewest discordant pairs with which the exact test can fall below the level α/tests, that is
/// with 2 · 0.5^n ≤ α/tests: 6 for one test, 12 for 86.
pub fn discordant_needed(tests: usize) -> usize {
    let level = ALPHA / tests.max(1) as f64;
    (1..1_000)
        .find(|n| 2.0 * 0.5_f64.powi(*n) <= level)
        .map_or(1_000, |n| usize::try_from(n).unwrap_or(1_000))
}

/// The exact McNemar test: the two-sided p of a split at least as uneven among the `only_left +
/// only_right` instances that one system alone gets right. `tests` are made at once.
///
/// # Errors
/// With fewer discordant instances than the test needs to reject at all.
pub fn mcnemar(only_left: u64, only_right: u64, tests: usize) -> Computed<f64> {
    let discordant = only_left + only_right;
    at_least(
        "discordant instances",
        discordant_needed(tests),
        usize::try_from(discordant).unwrap_or(usize::MAX),
    )?;
    Ok(exact(only_left, only_right))
}

fn exact(only_left: u64, only_right: u64) -> f64 {
    let binomial =
        Binomial::new(0.5, only_left + only_right).expect("invariant: a half is a probability");
    (2.0 * binomial.cdf(only_left.min(only_right))).min(1.0)
}

/// Tango's score interval (1998) of the difference of two paired proportions, `(b − c)/n`, where
/// `b` and `c` of `n` instances are right for one system alone.
///
/// # Errors
/// Without instances, and if more are discordant than there are in all.
pub fn tango(b: u64, c: u64, n: u64) -> Computed<Interval> {
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);

    at_least("instances", size(b + c).max(1), size(n))?;
    let (b, c, n) = (b as f64, c as f64, n as f64);

    let difference = (b - c) / n;
    // The score statistic at a difference δ, with the nuisance parameter at its constrained maximum
    // (Tango, eq. 2 to 4).
    let score = |delta: f64| {
        let (first, second, third) =
            (2.0 * n, -b - c + (2.0 * n - b + c) * delta, -c * delta * (1.0 - delta));
        let p21 =
            ((second * second - 4.0 * first * third).max(0.0).sqrt() - second) / (2.0 * first);
        let variance = n * (2.0 * p21 + delta * (1.0 - delta));
        if variance <= 0.0 { 0.0 } else { (b - c - n * delta) / variance.sqrt() }
    };

    let z = z_quantile();
    let edge = 1.0 - 1e-12;

    let low =
        if difference <= -1.0 { -1.0 } else { bisect(-edge, difference, |delta| score(delta) - z) };
    let high =
        if difference >= 1.0 { 1.0 } else { bisect(difference, edge, |delta| score(delta) + z) };

    Ok(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::super::LeftOut;
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn the_exact_test_is_statsmodels() {
        // statsmodels.stats.contingency_tables.mcnemar(exact=True).
        for (b, c, p) in
            [(10, 2, 0.038_574_218_8), (25, 8, 0.004_551_384_1), (5, 5, 1.0), (0, 0, 1.0)]
        {
            assert_near(exact(b, c), p, 1e-9);
            assert_near(exact(c, b), p, 1e-9);
        }
    }

    #[test]
    fn a_test_that_cannot_reject_is_left_out() {
        assert_eq!((discordant_needed(1), discordant_needed(86)), (6, 12));
        assert_eq!(
            mcnemar(0, 5, 1),
            Err(LeftOut::TooFew { what: "discordant instances", need: 6, have: 5 })
        );
        assert_near(mcnemar(0, 6, 1).unwrap(), 0.031_25, 1e-12);
        assert!(mcnemar(0, 11, 86).is_err() && mcnemar(0, 12, 86).unwrap() < 0.05 / 86.0);
    }

    #[test]
    fn the_score_interval_is_tangos() {
        // Independently computed with scipy.optimize.brentq on the score statistic.
        let interval = tango(10, 2, 100).unwrap();
        assert_near(interval.low, 0.014_296_464_8, 1e-8);
        assert_near(interval.high, 0.158_040_203_4, 1e-8);

        // Mirrored.
        let other = tango(2, 10, 100).unwrap();
        assert_near(other.low, -interval.high, 1e-9);
        assert_near(other.high, -interval.low, 1e-9);

        // No discordant instance: the interval is not a point.
        let none = tango(0, 0, 44).unwrap();
        assert!(none.low < -0.05 && none.high > 0.05, "{none:?}");

        let all = tango(30, 0, 30).unwrap();
        // Closed form where one side alone is right, always: (n - z^2)/(n + z^2), here with z^2 =
        // 3.841458821.
        assert_near(all.low, 26.158_541_179 / 33.841_458_821, 1e-8);

        assert_eq!(all.high, 1.0);
        assert!(tango(0, 0, 0).is_err() && tango(3, 3, 5).is_err());
    }
}
