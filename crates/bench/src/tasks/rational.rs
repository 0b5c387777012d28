//! Exact rationals, written as strings in lowest terms (`"-3/2"`, `"4"`) in lines and JSON.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;
use num_rational::BigRational;
use serde::{Deserialize, Serialize};

/// An exact rational number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rational(pub BigRational);

/// Longer numbers are refused: no trace contains one, only lines written to exhaust memory.
pub const BITS_MAX: u64 = 1 << 13;

/// Bytes of a fraction of two such numbers, rounded up.
const TEXT_MAX: usize = 5_000;

impl Rational {
    /// Length of the numerator or of the denominator, whichever is longer.
    pub fn bits(&self) -> u64 {
        self.0.numer().bits().max(self.0.denom().bits())
    }
}

/// Compares by cross-multiplication: the library compares continued fractions recursively, and
/// lines can hold numbers that share ten thousand terms.
impl Ord for Rational {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.numer() * other.0.denom()).cmp(&(other.0.numer() * self.0.denom()))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Rational {
    fn from(value: i64) -> Self {
        Self(BigRational::from_integer(value.into()))
    }
}

/// A text that is not a rational in lowest terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a rational in lowest terms, such as \"4\" or \"-3/2\"")]
pub struct NotRational(String);

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A whole number is written without its denominator.
        self.0.fmt(f)
    }
}

impl FromStr for Rational {
    type Err = NotRational;

    fn from_str(text: &str) -> Result<Self, NotRational> {
        let refuse = || NotRational(text.to_owned());
        // Before parsing, which takes longer than linear time.
        if text.len() > TEXT_MAX {
            return Err(NotRational(format!("{}…", text.chars().take(20).collect::<String>())));
        }

        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let denominator: BigInt = denominator.parse().map_err(|_| refuse())?;
        let numerator: BigInt = numerator.parse().map_err(|_| refuse())?;
        // The library panics at 0, and a negative denominator is not the one form.
        if denominator <= BigInt::ZERO {
            return Err(refuse());
        }

        let value = Self(BigRational::new(numerator, denominator));
        // `2/4`, `3/1`, `-0`, `05` and `+1` are numbers, but not written in the one form.
        if value.to_string() == text { Ok(value) } else { Err(refuse()) }
    }
}

impl TryFrom<String> for Rational {
    type Error = NotRational;

    fn try_from(text: String) -> Result<Self, NotRational> {
        text.parse()
    }
}

impl From<Rational> for String {
    fn from(rational: Rational) -> Self {
        rational.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::Rational;

    #[test]
    fn only_the_one_form_is_read() {
        for text in ["0", "4", "-3/2", "7/4", "100000000000000000000000000001/2"] {
            assert_eq!(
                text.parse::<Rational>().map(|value| value.to_string()).as_deref(),
                Ok(text)
            );
        }
        for text in [
            "", "2/4", "3/1", "1/0", "-0", "05", "+1", "1/-2", "1/", "/2", "1.5", " 1", "1/2/3",
            "0/5",
        ] {
            assert!(text.parse::<Rational>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn numbers_with_a_long_common_start_are_compared_without_the_stack() {
        // Ratios of neighbours in Fibonacci's sequence: continued fractions of ones.
        let (mut a, mut b) = (BigInt::from(1), BigInt::from(1));
        while b.bits() < super::BITS_MAX {
            (a, b) = (b.clone(), a + &b);
        }

        let next = &a + &b;
        let (first, second) =
            (Rational(BigRational::new(a, b.clone())), Rational(BigRational::new(b, next)));

        assert_ne!(first.cmp(&second), Ordering::Equal);
        assert_eq!(first < second, second > first);
        for (less, more) in [("-3/2", "-1"), ("0", "1/3"), ("1/3", "1/2"), ("3/2", "4")] {
            assert!(less.parse::<Rational>().ok() < more.parse::<Rational>().ok());
        }
    }
}
