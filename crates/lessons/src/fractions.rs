//! Fractions as lessons write them: products of their parts, with the lowest digit first.

use prime_bench::tasks::Rational;

/// Numerator and denominator; `None` if they are too long to be reckoned with.
pub fn parts(value: &Rational) -> Option<(i64, i64)> {
    let text = value.to_string();
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    Some((numerator.parse().ok()?, denominator.parse().ok()?))
}

/// The digits of a magnitude, lowest first.
pub fn low_first(number: i64) -> String {
    number.unsigned_abs().to_string().chars().rev().collect()
}

/// The product of two magnitudes: the first times each digit of the second, lowest digits first, then the sum. `None` if
/// it is too long.
pub fn product(x: i64, y: i64) -> Option<(String, i64)> {
    let (x, y) = (x.checked_abs()?, y.checked_abs()?);
    let product = x.checked_mul(y)?;
    let digits = low_first(y);
    let mut line = format!("{}*{digits}", low_first(x));
    if digits.len() > 1 {
        for digit in digits.chars() {
            line += &format!(",{}", low_first(x * i64::from(digit.to_digit(10)?)));
        }
    }
    Some((format!("{line}={}", low_first(product)), product))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_spelled() {
        assert_eq!(product(12, -34), Some(("21*43,84,63=804".to_owned(), 408)));
        assert_eq!(product(12, 5), Some(("21*5=06".to_owned(), 60)));
        assert_eq!(product(i64::MAX, 2), None);
    }
}
