//! Axes: from a range of values to places and marks.

/// Marks of a linear axis, about.
const MARKS: f64 = 5.0;
/// Decades above which a logarithmic axis has marks at decades only.
const FINE_DECADES: f64 = 2.5;
/// Decades above which not every one has a mark.
const DECADES_MAX: i32 = 7;

/// A range of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From 0.
    Linear { step: f64, high: f64 },
    /// Both ends are 1, 2 or 5 times a power of ten.
    Log { low: f64, high: f64 },
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `value`, with a bit of slack for rounding.
fn below(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0].into_iter().find(|factor| factor * decade <= value * (1.0 + 1e-9)).unwrap_or(1.0);
    factor * decade
}

/// The smallest of them that is not below.
fn above(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let fits = |factor: &f64| factor * decade >= value * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * decade
}

impl Scale {
    /// From 0 to above all values.
    pub fn linear(values: impl Iterator<Item = f64>) -> Self {
        let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let max = if max > 0.0 { max } else { 1.0 };
        let step = above(max / MARKS);
        Self::Linear { step, high: (max / step - 1e-9).ceil() * step }
    }

    /// Round all values that a logarithm has.
    pub fn log(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)));
        if high == 0.0 {
            return Self::Log { low: 1.0, high: 10.0 };
        }
        let (low, high) = (below(low), above(high));
        if low < high { Self::Log { low, high } } else { Self::Log { low: below(low / 2.0), high: above(high * 2.0) } }
    }

    /// From 1 to the power of ten above all values.
    pub fn decades(values: impl Iterator<Item = f64>) -> Self {
        let max = values.filter(|value| value.is_finite()).fold(10.0, f64::max);
        Self::Log { low: 1.0, high: 10_f64.powf((max.log10() - 1e-9).ceil()) }
    }

    /// Where a value is, 0 to 1 for those within; none where this axis cannot have it.
    pub fn place(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear { high, .. } => value.is_finite().then(|| value / high),
            Self::Log { low, high } => {
                (value.is_finite() && value > 0.0).then(|| (value / low).log10() / (high / low).log10())
            }
        }
    }

    /// The values that have a mark, from low to high.
    pub fn marks(self) -> Vec<f64> {
        let (low, high) = match self {
            Self::Linear { step, high } => {
                let mut marks = vec![0.0];
                while marks.len() < 100 && marks[marks.len() - 1] < high - step / 2.0 {
                    marks.push(marks.len() as f64 * step);
                }
                return marks;
            }
            Self::Log { low, high } => (low, high),
        };
        #[expect(clippy::cast_possible_truncation, reason = "exponents of ten are small")]
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let is_fine = (high / low).log10() < FINE_DECADES;
        let factors: &[f64] = if is_fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let stride = if last - first > DECADES_MAX { 2 } else { 1 };
        let decades = (first..=last).filter(|decade| (decade - first) % stride == 0);
        let marks = decades.flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)));
        marks.filter(|mark| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(mark)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= b.abs() * 1e-9;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(is_close),
            "{found:?} for {expected:?}"
        );
    }

    #[test]
    fn linear_axes_begin_at_zero() {
        let rows: [(&[f64], &[f64]); 5] = [
            (&[3.0, 10.0], &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (&[874_000.0], &[0.0, 200_000.0, 400_000.0, 600_000.0, 800_000.0, 1_000_000.0]),
            (&[], &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (&[0.0, f64::NAN, f64::INFINITY], &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (&[1e-3], &[0.0, 2e-4, 4e-4, 6e-4, 8e-4, 1e-3]),
        ];
        for (values, marks) in rows {
            close(&Scale::linear(values.iter().copied()).marks(), marks);
        }
    }

    #[test]
    fn logarithmic_axes_have_marks_that_are_round() {
        let rows: [(&[f64], &[f64]); 7] = [
            (&[1.0, 10_000.0], &[1.0, 10.0, 100.0, 1_000.0, 10_000.0]),
            (&[3.0, 40.0], &[2.0, 5.0, 10.0, 20.0, 50.0]),
            (&[0.4, 0.4], &[0.2, 0.5]),
            (&[1_000.0], &[500.0, 1_000.0, 2_000.0]),
            (&[], &[1.0, 2.0, 5.0, 10.0]),
            (&[0.0, -1.0, f64::NAN], &[1.0, 2.0, 5.0, 10.0]),
            (&[0.1, 1e8], &[0.1, 10.0, 1e3, 1e5, 1e7]),
        ];
        for (values, marks) in rows {
            close(&Scale::log(values.iter().copied()).marks(), marks);
        }
        close(&Scale::decades([20.0, 900.0].into_iter()).marks(), &[1.0, 10.0, 100.0, 1_000.0]);
        close(&Scale::decades([1_000.0].into_iter()).marks(), &[1.0, 10.0, 100.0, 1_000.0]);
        close(&Scale::decades(std::iter::empty()).marks(), &[1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn places_are_shares_of_the_axis() {
        let log = Scale::log([1.0, 10_000.0].into_iter());
        for (value, place) in [(1.0, Some(0.0)), (100.0, Some(0.5)), (10_000.0, Some(1.0)), (0.0, None), (-1.0, None)] {
            assert_eq!(log.place(value), place, "{value}");
        }
        let linear = Scale::linear([10.0].into_iter());
        for (value, place) in [(0.0, Some(0.0)), (5.0, Some(0.5)), (10.0, Some(1.0)), (f64::NAN, None)] {
            assert_eq!(linear.place(value), place, "{value}");
        }
    }
}
