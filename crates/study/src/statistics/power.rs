//! The smallest differences that a comparison can detect.

use statrs::distribution::{ContinuousCDF as _, Normal};

use super::left_out::at_least;
use super::root::bisect;
use super::{ALPHA, Computed, LeftOut};

/// Probability with which the least detectable difference is detected.
const POWER: f64 = 0.8;

/// The least difference of two paired proportions that McNemar's test on `n` instances finds with a
/// power of 80 %, if a share `discordance` of the instances is right for one system only (Connor
/// 1987); from 0 to 1. `tests` are made at once.
///
/// # Errors
/// Without instances, if the discordance is not a positive share, and if there are too few
/// instances to find any difference up to the discordance.
pub fn least_detectable_difference(n: usize, discordance: f64, tests: usize) -> Computed<f64> {
    at_least("instances", 1, n)?;
    if !(discordance > 0.0 && discordance <= 1.0) {
        return Err(LeftOut::NotPositive {
            what: "the share of discordant instances",
            value: discordance,
        });
    }

    let normal = Normal::standard();
    let z_alpha = normal.inverse_cdf(1.0 - ALPHA / 2.0 / tests.max(1) as f64);
    let z_power = normal.inverse_cdf(POWER);

    let needed = |difference: f64| {
        let spread = (discordance - difference * difference).max(0.0).sqrt();
        ((z_alpha * discordance.sqrt() + z_power * spread) / difference).powi(2)
    };
    // The discordance is the largest possible difference: then all discordant pairs favour one
    // side.
    let least = needed(discordance).ceil();
    if least > n as f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and casts saturate"
        )]
        at_least("instances", least as usize, n)?;
    }

    Ok(bisect(1e-9, discordance, |difference| needed(difference) - n as f64))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn differences_are_connors() {
        // Connor's formula solved with scipy.optimize.brentq, power .8, discordance .2.
        for (n, tests, expected) in [
            (100, 1, 0.123_819_331_5),
            (200, 1, 0.088_072_693_5),
            (600, 1, 0.051_049_276_3),
            (200, 86, 0.134_175_352_4),
            (600, 86, 0.077_938_912_5),
        ] {
            assert_near(least_detectable_difference(n, 0.2, tests).unwrap(), expected, 1e-8);
        }
    }

    #[test]
    fn too_few_instances_detect_nothing() {
        assert!(matches!(
            least_detectable_difference(5, 0.2, 1),
            Err(LeftOut::TooFew { have: 5, .. })
        ));
        assert!(
            least_detectable_difference(100, 0.0, 1).is_err()
                && least_detectable_difference(0, 0.2, 1).is_err()
        );
    }
}
