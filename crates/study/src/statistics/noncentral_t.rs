//! The noncentral t distribution, which `statrs` lacks: Lenth's algorithm AS 243 (1989).

use statrs::distribution::{ContinuousCDF as _, Normal};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

use super::root::bisect;

/// Terms of the series, which converges within about 1,000 for noncentralities below
/// [`NONCENTRALITY_MAX`].
const TERMS_MAX: u32 = 5_000;
const ERROR_MAX: f64 = 1e-14;
/// Largest noncentrality: beyond it the first term of the series underflows.
const NONCENTRALITY_MAX: f64 = 37.0;

/// P(T ≤ t) for noncentrality `delta`, at most 37 in size, with `df` degrees of freedom.
pub(super) fn cdf(t: f64, df: f64, delta: f64) -> f64 {
    if t < 0.0 {
        return 1.0 - cdf(-t, df, -delta);
    }

    let tail = Normal::standard().cdf(-delta);
    if t == 0.0 {
        return tail;
    }

    // The first terms: p and q are Poisson weights; `odd` and `even` are incomplete beta functions,
    // which recurrences lower from term to term.
    let x = t * t / (t * t + df);
    let half_square = delta * delta / 2.0;
    let mut p = 0.5 * (-half_square).exp();
    let mut q = delta * p * (2.0 / std::f64::consts::PI).sqrt();
    let mut remaining = 0.5 - p;
    let (mut a, b) = (0.5, df / 2.0);
    let ratio = (1.0 - x).powf(b);
    let mut odd = beta_reg(a, b, x);
    let mut odd_step =
        2.0 * ratio * (ln_gamma(a + b) - ln_gamma(a + 1.0) - ln_gamma(b) + a * x.ln()).exp() * a;
    let mut even = 1.0 - ratio;
    let mut even_step = b * x * ratio;
    let mut sum = p * odd + q * even;

    for term in 1..TERMS_MAX {
        let term = f64::from(term);
        a += 1.0;
        odd -= odd_step;
        even -= even_step;
        odd_step *= x * (a + b - 1.0) / a;
        even_step *= x * (a + b - 0.5) / (a + 0.5);
        p *= half_square / term;
        q *= half_square / (term + 0.5);
        remaining -= p;
        sum += p * odd + q * even;
        if 2.0 * remaining * (odd - odd_step).abs() <= ERROR_MAX && term > half_square {
            break;
        }
    }

    (sum + tail).clamp(0.0, 1.0)
}

/// The noncentrality at which `t` is the quantile `probability`; `None` if it is out of the
/// algorithm's range.
pub(super) fn noncentrality(t: f64, df: f64, probability: f64) -> Option<f64> {
    let found =
        bisect(-NONCENTRALITY_MAX, NONCENTRALITY_MAX, |delta| cdf(t, df, delta) - probability);
    (found.abs() < NONCENTRALITY_MAX - 1e-6).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::student;
    use super::super::tests::assert_near;
    use super::*;

    #[test]
    fn without_noncentrality_it_is_students() {
        for (t, df) in [(0.7, 3.0), (2.5, 5.0), (6.0, 40.0)] {
            assert_near(2.0 * (1.0 - cdf(t, df, 0.0)), student(df).two_sided(t), 1e-12);
        }
    }

    #[test]
    fn values_are_those_of_the_normal_limit_and_of_symmetry() {
        // With many degrees of freedom T is normal around delta.
        assert_near(cdf(3.0, 1e7, 2.0), 0.841_344_746, 1e-6);
        assert_near(cdf(-1.0, 8.0, 0.5) + cdf(1.0, 8.0, -0.5), 1.0, 1e-12);
        // P(T <= 0) is P(Z <= -delta).
        assert_near(cdf(0.0, 4.0, 1.0), 0.158_655_253_9, 1e-9);
    }
}
