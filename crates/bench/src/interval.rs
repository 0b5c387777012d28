//! Confidence intervals of proportions.

use serde::{Deserialize, Serialize};

/// A proportion with its 95 % Wilson score interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Proportion {
    pub count: u64,
    pub of: u64,
    /// 0 to 1.
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Proportion {
    #[expect(clippy::cast_precision_loss, reason = "counts of instances lie far below 2^53")]
    pub fn new(count: u64, of: u64) -> Self {
        if of == 0 {
            return Self { count, of, value: 0.0, low: 0.0, high: 1.0 };
        }

        let (n, p) = (of as f64, count as f64 / of as f64);
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

        // All of 100: the upper end is 1, the lower below it.
        let all = Proportion::new(100, 100);
        assert!(all.high > 0.999_999 && (all.low - 0.9630).abs() < 5e-5, "{all:?}");
    }
}
