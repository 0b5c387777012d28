//! The labelled values of an axis: round numbers, on a logarithmic axis powers of ten where the
//! range has several.

use crate::number::{fixed, in_units, plain};

/// A value of an axis and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// The value as text; labels of different ticks differ.
    pub label: String,
}

/// More ticks than this are never drawn.
const TICKS_MAX: usize = 50;

/// The smallest step of 1, 2 or 5 times a power of ten that is at least this large.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    // The slack keeps 0.1 + 0.2 from rounding up.
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= least * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

/// The unit in which labels of a range stay short: 1, a million or a thousand million.
fn unit(low: f64, high: f64) -> (f64, &'static str) {
    match low.abs().max(high.abs()) {
        size if size >= 1e9 => (1e9, " G"),
        size if size >= 1e6 => (1e6, " M"),
        _ => (1.0, ""),
    }
}

/// Digits after the point that a multiple of this step needs.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small whole number, clamped"
)]
fn decimals(step: f64) -> usize {
    (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize
}

/// Round values from `low` to `high`, evenly spaced, about `max` of them.
pub fn linear(low: f64, high: f64, max: usize) -> Vec<Tick> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return vec![Tick { value: low, label: plain(low) }];
    }

    let step = round_step(span / max.clamp(1, TICKS_MAX) as f64);
    let (size, suffix) = unit(low, high);
    let decimals = decimals(step / size);

    let first = (low / step - 1e-9).ceil();
    let ticks = (0..=TICKS_MAX).map(|index| (first + index as f64) * step);
    ticks
        .take_while(|value| *value <= high + 1e-9 * span)
        .map(|value| {
            // Adds 0 so that the tick is not -0.
            let value = value + 0.0;
            let suffix = if value == 0.0 { "" } else { suffix };
            Tick { value, label: format!("{}{suffix}", fixed(value / size, decimals)) }
        })
        .collect()
}

/// The label of a value on a logarithmic axis.
fn log_label(value: f64) -> String {
    if value >= 1e6 { in_units(value, plain) } else { plain(value) }
}

/// Powers of ten from `low` to `high`, which are positive; where there are fewer than three, their
/// multiples by 2 and 5 too; within less than that, round values as on a linear axis.
pub fn log(low: f64, high: f64, max: usize) -> Vec<Tick> {
    let (first, last) =
        ((low.log10() - 1e-9).ceil().clamp(-300.0, 300.0), (high.log10() + 1e-9).floor());
    #[expect(clippy::cast_possible_truncation, reason = "exponents are small")]
    let decades: Vec<i32> = (first as i32 - 1..=last.clamp(-300.0, 300.0) as i32).collect();
    let max = max.clamp(1, TICKS_MAX);

    let is_inside = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
    let with = |multiples: &[f64], stride: usize| -> Vec<f64> {
        let stride = i32::try_from(stride).unwrap_or(i32::MAX);
        let powers = decades.iter().filter(|power| power.rem_euclid(stride) == 0);
        let values = powers.flat_map(|power| multiples.iter().map(|it| it * 10_f64.powi(*power)));
        values.filter(is_inside).collect()
    };

    let powers = with(&[1.0], 1);
    let values = if powers.len() >= 3 {
        with(&[1.0], powers.len().div_ceil(max))
    } else {
        let some = [with(&[1.0, 2.0, 5.0], 1), with(&[1.0, 3.0], 1), powers];
        some.into_iter().find(|values| values.len() <= max).unwrap_or_default()
    };
    if values.len() < 2 {
        return linear(low, high, max).into_iter().filter(|tick| tick.value > 0.0).collect();
    }
    values.into_iter().map(|value| Tick { value, label: log_label(value) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn log_axes_have_powers_of_ten() {
        assert_eq!(labels(&log(1.0, 10_000.0, 8)), ["1", "10", "100", "1,000", "10,000"]);
        assert_eq!(labels(&log(0.01, 3.0, 8)), ["0.01", "0.1", "1"]);
        // 0.2 to 2.4 million parameters: one power of ten is too few.
        let parameters = labels(&log(180_000.0, 2_450_000.0, 8)).join(" ");
        assert_eq!(parameters, "200,000 500,000 1 M 2 M");
        // Every second power where there is no room for all.
        assert_eq!(labels(&log(1.0, 1e6, 4)), ["1", "100", "10,000", "1 M"]);
        // Within a factor of two: as on a linear axis.
        assert_eq!(labels(&log(30.0, 40.0, 5)), ["30", "32", "34", "36", "38", "40"]);
        assert!(!log(f64::MIN_POSITIVE, f64::MAX, 8).is_empty());
    }

    #[test]
    fn linear_axes_have_round_values_with_labels_that_differ() {
        assert_eq!(labels(&linear(0.0, 100.0, 5)), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&linear(-7.0, 12.0, 4)), ["-5", "0", "5", "10"]);
        assert_eq!(
            labels(&linear(0.0, 0.000_4, 4)),
            ["0.0000", "0.0001", "0.0002", "0.0003", "0.0004"]
        );
        assert_eq!(labels(&linear(0.0, 350_000.0, 4))[1..3], ["100,000", "200,000"]);
        assert_eq!(labels(&linear(0.0, 3e6, 3)), ["0", "1 M", "2 M", "3 M"]);
        assert_eq!(labels(&linear(5.0, 5.0, 4)), ["5"]);

        for (low, high) in [(0.0, 1e-7), (99.5, 100.0), (-1e12, 1e12), (0.3, 0.7)] {
            let ticks = linear(low, high, 6);
            let mut known = labels(&ticks);
            known.sort_unstable();
            known.dedup();
            assert_eq!(known.len(), ticks.len(), "{ticks:?}");
            assert!((2..=8).contains(&ticks.len()), "{ticks:?}");
        }
    }
}
