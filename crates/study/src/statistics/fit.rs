//! Fits of scaling laws (eq. 22, 23, 50, 51) and correlation (eq. 21).

use serde::Serialize;

use super::left_out::{at_least, finite};
use super::{Computed, Interval, LeftOut, mean, student, t_quantile, z_quantile};

/// A straight line by ordinary least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The value at x = 0.
    pub intercept: f64,
    /// The change of y for each unit of x.
    pub slope: f64,
    /// The 95 % interval by Student's t with n − 2 degrees of freedom.
    pub slope_interval: Interval,
    /// Share of the variance that the line explains; 1 if the points lie on it.
    pub r_squared: f64,
    /// Number of points.
    pub n: usize,
}

/// A power law with an offset, `a x^b + c`, by least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OffsetPower {
    /// Factor of the power.
    pub a: f64,
    /// Exponent, −8 to 8.
    pub b: f64,
    /// The 95 % interval, from the curvature at the minimum.
    pub b_interval: Interval,
    /// Offset.
    pub c: f64,
    /// Share of the variance that the law explains; 1 if the points lie on it.
    pub r_squared: f64,
    /// Number of points.
    pub n: usize,
}

/// Pearson's correlation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// The coefficient, −1 to 1.
    pub r: f64,
    /// Two-sided p.
    pub p: f64,
    /// Fisher's 95 % interval.
    pub interval: Interval,
    /// Number of points.
    pub n: usize,
}

/// Sums of squares and products around the means.
struct Moments {
    xx: f64,
    xy: f64,
    yy: f64,
    mean_x: f64,
    mean_y: f64,
}

fn moments(x: &[f64], y: &[f64], need: usize) -> Computed<Moments> {
    if x.len() != y.len() {
        return Err(LeftOut::NotPaired { left: x.len(), right: y.len() });
    }

    finite(x.iter().chain(y))?;
    at_least("points", need, x.len())?;

    let (mean_x, mean_y) = (mean(x), mean(y));
    let sum = |left: &[f64], left_mean: f64, right: &[f64], right_mean: f64| -> f64 {
        left.iter().zip(right).map(|(left, right)| (left - left_mean) * (right - right_mean)).sum()
    };

    let (xx, yy) = (sum(x, mean_x, x, mean_x), sum(y, mean_y, y, mean_y));
    // A line has no slope without different x, and explains no variance without different y.
    if xx <= 0.0 {
        return Err(LeftOut::NoVariation { what: "sizes" });
    }
    if yy <= 0.0 {
        return Err(LeftOut::NoVariation { what: "values" });
    }

    Ok(Moments { xx, xy: sum(x, mean_x, y, mean_y), yy, mean_x, mean_y })
}

/// The line `y = intercept + slope · x`.
///
/// # Errors
/// With fewer than three points, and if all x or all y are equal.
pub fn line(x: &[f64], y: &[f64]) -> Computed<Line> {
    let Moments { xx, xy, yy, mean_x, mean_y } = moments(x, y, 3)?;

    let slope = xy / xx;
    let residual = (yy - slope * xy).max(0.0);

    let df = (x.len() - 2) as f64;
    let half = t_quantile(df) * (residual / df / xx).sqrt();
    Ok(Line {
        intercept: mean_y - slope * mean_x,
        slope,
        slope_interval: Interval::around(slope, half),
        r_squared: 1.0 - residual / yy,
        n: x.len(),
    })
}

fn logarithms(what: &'static str, values: &[f64], log: fn(f64) -> f64) -> Computed<Vec<f64>> {
    let log = |value: &f64| {
        if *value > 0.0 {
            Ok(log(*value))
        } else {
            Err(LeftOut::NotPositive { what, value: *value })
        }
    };
    values.iter().map(log).collect()
}

/// `y = e^intercept · x^slope`, as a line through the logarithms (eq. 22).
///
/// # Errors
/// Like [`line()`], and if a value is not positive.
pub fn power_law(x: &[f64], y: &[f64]) -> Computed<Line> {
    line(&logarithms("a size", x, f64::ln)?, &logarithms("a value", y, f64::ln)?)
}

/// `y = intercept + slope · log2 x`: the slope is the gain by a doubling (eq. 23, 50).
///
/// # Errors
/// Like [`line()`], and if a size is not positive.
pub fn log2_law(x: &[f64], y: &[f64]) -> Computed<Line> {
    line(&logarithms("a size", x, f64::log2)?, y)
}

/// Pearson's r with Fisher's interval (eq. 21).
///
/// # Errors
/// With fewer than four points, and if all x or all y are equal.
pub fn pearson(x: &[f64], y: &[f64]) -> Computed<Correlation> {
    let Moments { xx, xy, yy, .. } = moments(x, y, 4)?;
    let (r, n) = ((xy / (xx * yy).sqrt()).clamp(-1.0, 1.0), x.len());
    let df = (n - 2) as f64;
    let p =
        if r.abs() >= 1.0 { 0.0 } else { student(df).two_sided(r * (df / (1.0 - r * r)).sqrt()) };
    let half = z_quantile() / ((n - 3) as f64).sqrt();

    let interval = Interval { low: (r.atanh() - half).tanh(), high: (r.atanh() + half).tanh() };
    Ok(Correlation { r, p, interval, n })
}

/// Largest exponent, in either direction, that the fit searches.
const EXPONENT_MAX: f64 = 8.0;
/// Steps of the first search, which finds the valley of the residual.
const GRID: u32 = 1_600;

/// `y = a x^b + c` (eq. 51). For a given b, a and c are a line; b is searched from −8 to 8.
///
/// # Errors
/// With fewer than five points, if a size is not positive, and if the best exponent is 0 (where the
/// law is a logarithm: use [`log2_law`]) or at the end of the range.
pub fn offset_power_law(x: &[f64], y: &[f64]) -> Computed<OffsetPower> {
    let logs = logarithms("a size", x, f64::ln)?;

    let total = moments(x, y, 5)?.yy;
    let fitted = |b: f64| line(&logs.iter().map(|log| (b * log).exp()).collect::<Vec<_>>(), y);
    let residual = |b: f64| fitted(b).map_or(f64::INFINITY, |line| (1.0 - line.r_squared) * total);

    let step = 2.0 * EXPONENT_MAX / f64::from(GRID);
    // Between the grid's points, so that none of them is b = 0, where a and c cannot be told apart.
    let at = |index: u32| -EXPONENT_MAX + (f64::from(index) + 0.5) * step;

    let best =
        (0..GRID).map(at).min_by(|a, b| residual(*a).total_cmp(&residual(*b))).unwrap_or(0.0);

    if best.abs() < 2.0 * step || best.abs() > EXPONENT_MAX - 2.0 * step {
        return Err(LeftOut::NoConvergence {
            bound: if best.abs() < 1.0 { 0.0 } else { best.signum() * EXPONENT_MAX },
        });
    }

    let b = golden(best - step, best + step, residual);
    let Line { intercept: c, slope: a, r_squared, .. } = fitted(b)?;

    let df = (x.len() - 3) as f64;
    let variance = residual(b) / df * inverse_of_curvature(&logs, a, b)?;
    let half = t_quantile(df) * variance.sqrt();
    Ok(OffsetPower { a, b, b_interval: Interval::around(b, half), c, r_squared, n: x.len() })
}

/// The entry of (JᵀJ)⁻¹ that belongs to b; J holds the derivatives of `a x^b + c` by a, b and c.
fn inverse_of_curvature(logs: &[f64], a: f64, b: f64) -> Computed<f64> {
    let powers: Vec<f64> = logs.iter().map(|log| (b * log).exp()).collect();
    let by_b: Vec<f64> = logs.iter().zip(&powers).map(|(log, power)| a * log * power).collect();
    // By partial regression: the part of the derivative by b that the other two do not explain.
    let explained = line(&powers, &by_b)?;
    let rest = |(power, value): (&f64, &f64)| {
        (value - explained.intercept - explained.slope * power).powi(2)
    };

    let left: f64 = powers.iter().zip(&by_b).map(rest).sum();
    if left > 0.0 { Ok(1.0 / left) } else { Err(LeftOut::NoVariation { what: "sizes" }) }
}

/// The minimum of a function with one valley, by golden section.
fn golden(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    for _ in 0..80 {
        let (left, right) = (high - RATIO * (high - low), low + RATIO * (high - low));
        // Golden sections keep a fixed share of the range, and one valley stays inside.
        if function(left) < function(right) { high = right } else { low = left }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_near;
    use super::*;

    /// Parameters in billions, baseline accuracy and relative gain in per cent: the paper's table
    /// 2.
    const SIZES: [f64; 7] = [8.0, 12.0, 14.0, 20.0, 27.0, 30.0, 120.0];
    const BASELINE: [f64; 7] = [24.3, 30.5, 28.2, 38.8, 37.2, 45.2, 57.8];
    const GAINS: [f64; 7] = [244.9, 189.2, 204.3, 137.4, 140.6, 108.6, 66.8];

    #[test]
    fn the_papers_gains_follow_another_power() {
        // scipy.stats.linregress on the logarithms; the paper says 0.35.
        let fit = power_law(&SIZES, &GAINS).unwrap();
        assert_near(fit.slope, -0.487_451_250_8, 1e-8);
        assert_near(fit.slope_interval.low, -0.610_999_962_5, 1e-7);
        assert_near(fit.slope_interval.high, -0.363_902_539_2, 1e-7);
        assert_near(fit.r_squared, 0.953_643_844_7, 1e-8);
    }

    #[test]
    fn a_doubling_gains_a_fixed_amount() {
        // y = 3 + 2 log2 x, and the paper's baseline (its text says 0.078 by a doubling).
        let exact = log2_law(&[1.0, 2.0, 4.0, 16.0], &[3.0, 5.0, 7.0, 11.0]).unwrap();
        assert_near(exact.slope, 2.0, 1e-12);
        assert_near(exact.intercept, 3.0, 1e-12);
        assert_near(exact.r_squared, 1.0, 1e-12);

        let shares = BASELINE.map(|percent| percent / 100.0);
        assert_near(log2_law(&SIZES, &shares).unwrap().slope, 0.0877, 5e-5);
    }

    #[test]
    fn the_correlation_has_fishers_interval() {
        // scipy.stats.pearsonr(log(N), baseline) and its confidence_interval().
        let correlation = pearson(&SIZES.map(f64::ln), &BASELINE).unwrap();
        assert_near(correlation.r, 0.971_809_822_6, 1e-9);
        assert_near(correlation.p, 2.524_108_138e-4, 1e-10);
        assert_near(correlation.interval.low, 0.815_718_073_7, 1e-8);
        assert_near(correlation.interval.high, 0.995_980_356_8, 1e-8);
    }

    #[test]
    fn the_law_with_an_offset_is_scipys() {
        // scipy.optimize.curve_fit.
        let x = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let y = [20.1, 27.4, 36.2, 48.0, 62.9, 83.1];

        let fit = offset_power_law(&x, &y).unwrap();
        assert_near(fit.a, 22.956_698_22, 1e-4);
        assert_near(fit.b, 0.380_015_266, 1e-6);
        assert_near(fit.c, -2.687_602_982, 1e-4);
        assert_near(fit.b_interval.low, 0.350_80, 1e-4);
        assert_near(fit.b_interval.high, 0.409_23, 1e-4);
    }

    #[test]
    fn fits_without_enough_data_are_left_out() {
        assert_eq!(
            line(&[1.0, 2.0], &[1.0, 2.0]),
            Err(LeftOut::TooFew { what: "points", need: 3, have: 2 })
        );
        assert_eq!(
            line(&[2.0; 4], &[1.0, 2.0, 3.0, 4.0]),
            Err(LeftOut::NoVariation { what: "sizes" })
        );
        assert!(matches!(
            power_law(&[1.0, 2.0, 3.0], &[1.0, 0.0, 2.0]),
            Err(LeftOut::NotPositive { .. })
        ));
        // A logarithm: the exponent runs to zero, as with the paper's sizes.
        let x = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        assert_eq!(
            offset_power_law(&x, &x.map(f64::log2)),
            Err(LeftOut::NoConvergence { bound: 0.0 })
        );
    }
}
