//! Remainders modulo a prime, as letters.

/// A remainder modulo a prime: `a` for 0.
pub fn residue(number: i64, prime: i64) -> char {
    let place = usize::try_from(number.rem_euclid(prime)).unwrap_or(usize::MAX);
    (b'a'..=b'~').nth(place).map_or('~', char::from)
}

/// A quotient modulo a prime that does not divide the divisor.
pub fn divided(x: i64, y: i64, prime: i64) -> Option<i64> {
    (0..prime).find(|quotient| (quotient * y - x).rem_euclid(prime) == 0)
}

/// The remainders of the leading digits, one after the other, each after the letter of its last
/// digit.
pub fn residues(number: i64, from: char, prime: i64) -> String {
    let mut rest = 0;
    let digits = number.unsigned_abs().to_string();
    let digits = digits.chars().zip(from..='Z');

    digits
        .map(|(digit, letter)| {
            rest = (10 * rest + i64::from(digit.to_digit(10).unwrap_or(0))) % prime;
            format!("{letter}{}", residue(rest, prime))
        })
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_run_from_the_highest_digit() {
        assert_eq!(residues(-123, 'A', 19), "AbBmCj", "1, 12, 123 - 6 * 19 = 9");
        assert_eq!(divided(3, 2, 19), Some(11));
    }
}
