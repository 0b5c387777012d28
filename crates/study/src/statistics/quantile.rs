//! Quantiles and the five numbers of a box plot.

use serde::Serialize;

/// The quantile of sorted values by linear interpolation (Hyndman and Fan's type 7, the default of
/// R and numpy). `share` is from 0 to 1. `None` without values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place within the values"
)]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// A box plot's numbers. The whiskers end at the outermost values within 1.5 interquartile ranges
/// of the box.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FiveNumbers {
    /// The least value within 1.5 interquartile ranges of the box.
    pub whisker_low: f64,
    /// The first quartile.
    pub quartile_low: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub quartile_high: f64,
    /// The largest value within 1.5 interquartile ranges of the box.
    pub whisker_high: f64,
}

impl FiveNumbers {
    /// The numbers of these values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);

        let [quartile_low, median, quartile_high] =
            [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share));
        let (quartile_low, median, quartile_high) = (quartile_low?, median?, quartile_high?);

        let reach = 1.5 * (quartile_high - quartile_low);
        let whisker_low = *sorted.iter().find(|value| **value >= quartile_low - reach)?;
        let whisker_high = *sorted.iter().rev().find(|value| **value <= quartile_high + reach)?;
        // With few values a quartile lies between two of them, so that the outermost value within
        // reach may be inside the box.
        Some(Self {
            whisker_low: whisker_low.min(quartile_low),
            quartile_low,
            median,
            quartile_high,
            whisker_high: whisker_high.max(quartile_high),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numpys() {
        // numpy.quantile([1, 2, 4, 8, 100], [0, .25, .5, .75, .9, 1]).
        let sorted = [1.0, 2.0, 4.0, 8.0, 100.0];
        let expected =
            [(0.0, 1.0), (0.25, 2.0), (0.5, 4.0), (0.75, 8.0), (0.9, 63.2), (1.0, 100.0)];
        for (share, value) in expected {
            assert!((quantile(&sorted, share).unwrap() - value).abs() < 1e-9, "{share}");
        }
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn whiskers_leave_outliers_out() {
        let numbers = FiveNumbers::of(&[8.0, 1.0, 2.0, 100.0, 4.0]).unwrap();
        assert_eq!((numbers.whisker_low, numbers.whisker_high), (1.0, 8.0));
        assert_eq!((numbers.quartile_low, numbers.median, numbers.quartile_high), (2.0, 4.0, 8.0));
        assert_eq!(FiveNumbers::of(&[]), None);
        assert_eq!(FiveNumbers::of(&[3.0]).unwrap().whisker_low, 3.0);
    }
}
