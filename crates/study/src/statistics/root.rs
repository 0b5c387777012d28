//! Roots of monotone functions by bisection.

/// Halvings, enough for the last bit of a double from any range of practical size.
const HALVINGS: u32 = 200;

/// The point between `low` and `high` at which `function`, which changes its sign once, is zero. If
/// it has the same sign at both ends, the end at which it is closer to zero.
pub(super) fn bisect(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (at_low, at_high) = (function(low), function(high));
    if at_low.signum() == at_high.signum() {
        return if at_low.abs() < at_high.abs() { low } else { high };
    }

    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        // No double lies between them any more.
        if middle <= low || middle >= high {
            break;
        }
        if function(middle).signum() == at_low.signum() { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::bisect;

    #[test]
    fn roots_are_found_to_the_last_bits() {
        assert!((bisect(0.0, 9.0, |x| x * x - 49.0) - 7.0).abs() < 1e-14);
        assert!((bisect(0.0, 9.0, |x| 3.0 - x) - 3.0).abs() < 1e-15);
        assert_eq!(bisect(1.0, 2.0, |x| x), 1.0, "no root: the closer end");
    }
}
