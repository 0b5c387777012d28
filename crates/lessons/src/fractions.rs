//! Fractions as lessons write them: products and remainders of their parts, with the lowest digit first.

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

/// The greatest common divisor of two positive numbers and their quotients by it, by Euclid's algorithm: each division is
/// its dividend, quotient, the divisor times the quotient, and the rest; from the quotients, last one first, the fraction in
/// lowest terms is built up again.
pub fn reduced(x: i64, y: i64) -> Option<(String, [i64; 2])> {
    let (mut dividend, mut divisor) = (x, y);
    let mut quotients = Vec::new();
    let mut line = String::new();
    while divisor != 0 {
        let (quotient, rest) = (dividend / divisor, dividend % divisor);
        line += &format!(
            "{dividend}/{divisor}={quotient} {}-{} ",
            low_first(divisor.checked_mul(quotient)?),
            low_first(rest)
        );
        quotients.push(quotient);
        (dividend, divisor) = (divisor, rest);
    }
    let (mut above, mut below) = (1_i64, 0_i64);
    for quotient in quotients.into_iter().rev() {
        (above, below) = (quotient.checked_mul(above)?.checked_add(below)?, above);
        line += &format!("{quotient}:{above}/{below} ");
    }
    Some((line.trim_end().to_owned(), [above, below]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_quotients_are_spelled() {
        assert_eq!(product(12, -34), Some(("21*43,84,63=804".to_owned(), 408)));
        assert_eq!(product(12, 5), Some(("21*5=06".to_owned(), 60)));
        assert_eq!(product(i64::MAX, 2), None);
        let (line, fraction) = reduced(12, 18).expect("small");
        assert_eq!((line.as_str(), fraction), ("12/18=0 0-21 18/12=1 21-6 12/6=2 21-0 2:2/1 1:3/2 0:2/3", [2, 3]));
    }
}
