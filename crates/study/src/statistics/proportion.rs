//! The exact interval of a proportion. Wilson's is in `prime_bench::interval`.

use statrs::distribution::{Beta, ContinuousCDF as _};

use super::left_out::at_least;
use super::{CONFIDENCE, Computed, Interval, LeftOut};

/// The Clopper-Pearson interval of a proportion `count` of `of`, which covers the true proportion
/// in at least 95 % of cases.
///
/// # Errors
/// Without trials, and if there are more successes than trials.
pub fn clopper_pearson(count: u64, of: u64) -> Computed<Interval> {
    at_least("runs", 1, usize::try_from(of).unwrap_or(usize::MAX))?;
    if count > of {
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        return Err(LeftOut::TooLarge {
            what: "a count of successes",
            value: size(count),
            limit: size(of),
        });
    }

    let tail = (1.0 - CONFIDENCE) / 2.0;
    let quantile = |a: u64, b: u64, p: f64| {
        let beta = Beta::new(a as f64, b as f64).expect("invariant: both shapes are positive");
        // The library's quantile is good to about eight digits, and its distribution function to
        // more.
        super::root::bisect(0.0, 1.0, |x| beta.cdf(x) - p)
    };

    let failures = of - count;
    Ok(Interval {
        low: if count == 0 { 0.0 } else { quantile(count, failures + 1, tail) },
        high: if failures == 0 { 1.0 } else { quantile(count + 1, failures, 1.0 - tail) },
    })
}

#[cfg(test)]
mod tests {
    use super::super::Proportion;
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn intervals_of_proportions_are_those_of_scipy() {
        // scipy.stats.binomtest(83, 100).proportion_ci(method="exact"), and method="wilson" for
        // 81/263 and 0/8.
        let exact = clopper_pearson(83, 100).unwrap();
        assert_near(exact.low, 0.741_824_589_4, 1e-9);
        assert_near(exact.high, 0.897_735_090_0, 1e-9);

        let wilson = Proportion::new(81, 263);
        assert_near(wilson.low, 0.255_288_519_9, 1e-9);
        assert_near(wilson.high, 0.366_209_577_0, 1e-9);

        let none = Proportion::new(0, 8);
        assert_near(none.low, 0.0, 1e-12);
        assert_near(none.high, 0.324_407_564_9, 1e-9);
    }

    #[test]
    fn the_ends_are_exact() {
        // Closed form at the ends: 1 − (α/2)^(1/n), the rule of three's exact version.
        let none = clopper_pearson(0, 20).unwrap();
        assert_eq!(none.low, 0.0);
        assert_near(none.high, 1.0 - 0.025_f64.powf(0.05), 1e-12);

        let all = clopper_pearson(20, 20).unwrap();
        assert_eq!(all.high, 1.0);
        assert_near(all.low, 0.025_f64.powf(0.05), 1e-12);

        assert_eq!(clopper_pearson(0, 0), Err(LeftOut::TooFew { what: "runs", need: 1, have: 0 }));
        assert!(clopper_pearson(3, 2).is_err());
    }
}
