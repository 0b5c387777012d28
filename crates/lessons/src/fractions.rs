//! Fractions as lessons write them: products and quotients of their parts, with the lowest digit
//! first.

use prime_bench::tasks::Rational;

/// Numerator and denominator; `None` if either does not fit into 64 bits.
pub fn parts(value: &Rational) -> Option<(i64, i64)> {
    let text = value.to_string();
    let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
    Some((numerator.parse().ok()?, denominator.parse().ok()?))
}

/// The digits of a magnitude, lowest first.
pub fn low_first(number: i64) -> String {
    number.unsigned_abs().to_string().chars().rev().collect()
}

/// The product of two magnitudes: the first times each digit of the second, lowest digits first,
/// then the sum. `None` if it is too long.
pub fn product(x: i64, y: i64) -> Option<(String, i64)> {
    // `i64::MIN` has no magnitude in 64 bits.
    let (x, y) = (x.checked_abs()?, y.checked_abs()?);
    let product = x.checked_mul(y)?;

    let digits = low_first(y);
    let mut line = format!("{}*{digits}", low_first(x));

    // With a single digit the only partial product is the product itself.
    if digits.len() > 1 {
        for digit in digits.chars() {
            line += &format!(",{}", low_first(x * i64::from(digit.to_digit(10)?)));
        }
    }

    Some((format!("{line}={}", low_first(product)), product))
}

/// Two natural numbers divided by their greatest common divisor, by Euclid's algorithm. All numbers
/// have the lowest digit first.
///
/// Each division is written as its quotient, the multiple of the divisor if the quotient is above
/// 1, and the rest. Then the fraction is rebuilt from the quotients, last one first: each number is
/// the quotient times the latest number, plus the one before. The last two numbers are the result,
/// the numerator last.
///
/// 12 and 18, which are reduced to 2 and 3, give `21,81:0-21 1-6 2:21-0 1 2:2 1:3 0:2`.
pub fn lowest_terms(x: i64, y: i64) -> Option<(String, [i64; 2])> {
    let mut line = format!("{},{}:", low_first(x), low_first(y));

    let (mut dividend, mut divisor) = (x, y);
    let mut quotients = Vec::new();

    while divisor != 0 {
        let (quotient, rest) = (dividend / divisor, dividend % divisor);
        line += &quotient.to_string();
        if quotient > 1 {
            line += &format!(":{}", low_first(divisor.checked_mul(quotient)?));
        }
        line += &format!("-{} ", low_first(rest));
        quotients.push(quotient);
        (dividend, divisor) = (divisor, rest);
    }

    // Run backwards from 1 instead of the greatest common divisor, the quotients rebuild both
    // numbers divided by it.
    let (mut above, mut below) = (1_i64, 0_i64);
    line.push('1');
    for quotient in quotients.into_iter().rev() {
        (above, below) = (quotient.checked_mul(above)?.checked_add(below)?, above);
        line += &format!(" {quotient}:{}", low_first(above));
    }

    Some((line, [above, below]))
}

/// Two denominators divided by their greatest common divisor: the greater one by the less, as in
/// [`lowest_terms`]. If that leaves no rest, nothing is rebuilt, since the quotient and 1 are the
/// result.
pub fn cofactors(x: i64, y: i64) -> Option<(String, [i64; 2])> {
    let (greater, less) = (x.max(y), x.min(y));
    let (mut line, [mut ours, mut theirs]) = lowest_terms(greater, less)?;

    // Cuts the line after the rest of the only division.
    if theirs == 1 {
        line.truncate(line.find("-0 ")? + 2);
    }

    if x < y {
        (ours, theirs) = (theirs, ours);
    }

    Some((line, [ours, theirs]))
}

/// The number times a factor, which is not written if it is 1.
pub fn multiplied(number: i64, factor: i64, line: &mut String) -> Option<i64> {
    if factor == 1 {
        return number.checked_abs();
    }
    let (text, product) = product(number, factor)?;
    *line += &(text + " ");
    Some(product)
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

    #[test]
    fn fractions_are_built_up_again_from_their_quotients() {
        let of = |x, y| lowest_terms(x, y).expect("small");

        assert_eq!(of(12, 18), ("21,81:0-21 1-6 2:21-0 1 2:2 1:3 0:2".to_owned(), [2, 3]));
        assert_eq!(of(44, 22), ("44,22:2:44-0 1 2:2".to_owned(), [2, 1]));

        assert_eq!(cofactors(22, 44), Some(("44,22:2:44-0".to_owned(), [1, 2])));
        assert_eq!(cofactors(18, 12), Some(("81,21:1-6 2:21-0 1 2:2 1:3".to_owned(), [3, 2])));
    }
}
