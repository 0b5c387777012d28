//! Confidence intervals of proportions.

use serde::{Deserialize, Serialize};

/// A proportion with its 95 % Wilson score interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Proportion {
    /// Number of successes, 0 to `of`.
    pub count: u64,
    /// Number of observations.
    pub of: u64,
    /// 0 to 1.
    pub value: f64,
    /// Lower end of the interval, 0 to 1.
    pub low: f64,
    /// Upper end of the interval, 0 to 1.
    pub high: f64,
}

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Proportion {
    /// The proportion of `count` successes in `of` observations, all of which count.
    pub fn new(count: u64, of: u64) -> Self {
        Self::over_inputs(count, of, of)
    }

    /// The proportion of `of` instances with only `inputs` different inputs, 0 to `of`. An instance
    /// with the input of another one says nothing new, so the interval is that of the same share of
    /// `inputs` observations.
    #[expect(clippy::cast_precision_loss, reason = "counts of instances lie far below 2^53")]
    pub fn over_inputs(count: u64, of: u64, inputs: u64) -> Self {
        if of == 0 || inputs == 0 {
            return Self { count, of, value: 0.0, low: 0.0, high: 1.0 };
        }

        let (n, p) = (inputs.min(of) as f64, count as f64 / of as f64);
        let (centre, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let (low, high) = (((centre - half) / scale).max(0.0), ((centre + half) / scale).min(1.0));

        Self { count, of, value: p, low, high }
    }

    /// `97.0 (91.5–99.0)`, in per cent.
    pub fn text(&self) -> String {
        format!("{:.1} ({:.1}–{:.1})", self.value * 100.0, self.low * 100.0, self.high * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // 81 of 263: a textbook example (Newcombe 1998, table I): 0.2553 to 0.3662.
        let proportion = Proportion::new(81, 263);
        assert!(
            (proportion.low - 0.2553).abs() < 5e-5 && (proportion.high - 0.3662).abs() < 5e-5,
            "{proportion:?}"
        );

        // Half of 600 instances with 8 inputs: as 4 of 8 (Newcombe's formula by hand: the centre is
        // .5, and the half-width 1.96 sqrt(.25/8 + 3.8415/256) / (1 + 3.8415/8) = .2848).
        let few = Proportion::over_inputs(300, 600, 8);
        assert_eq!((few.count, few.of, few.value), (300, 600, 0.5));
        assert!((few.low - 0.2152).abs() < 5e-5 && (few.high - 0.7848).abs() < 5e-5, "{few:?}");

        // All of 100: the upper end is 1, the lower below it.
        let all = Proportion::new(100, 100);
        assert!(all.high > 0.999_999 && (all.low - 0.9630).abs() < 5e-5, "{all:?}");
    }
}
