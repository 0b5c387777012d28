//! Lists of rationals that states share: rows of a matrix and coefficients of a polynomial.
//! A step copies the lists that it changes and no others.

use std::ops::Deref;
use std::sync::Arc;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tasks::Rational;
use crate::tasks::rational::BITS_MAX;

/// The sum of the products, as numerator and denominator, not in lowest terms: what wrong lines
/// multiply up would take minutes to reduce on the way.
pub fn sum_of_products<'a>(
    pairs: impl IntoIterator<Item = (&'a Rational, &'a Rational)>,
) -> (BigInt, BigInt) {
    let (mut numerator, mut denominator) = (BigInt::ZERO, BigInt::one());
    for (x, y) in pairs {
        let below = x.0.denom() * y.0.denom();
        let above = x.0.numer() * y.0.numer();
        if !above.is_zero() {
            // The usual case: integers need no common denominator.
            if below.is_one() {
                numerator += above * &denominator;
            } else {
                numerator = numerator * &below + above * &denominator;
                denominator *= below;
            }
        }
    }

    (numerator, denominator)
}

/// Total bits of the numbers of a list in a submitted state: bounds the denominators of sums over
/// it.
pub const TOTAL_BITS_MAX: u64 = 1 << 17;

/// A list of rationals, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rationals(Arc<[Rational]>);

impl Deref for Rationals {
    type Target = [Rational];
    fn deref(&self) -> &[Rational] {
        &self.0
    }
}

impl Serialize for Rationals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Rationals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Rational>::deserialize(deserializer).map(|values| Self(values.into()))
    }
}

impl FromIterator<BigRational> for Rationals {
    fn from_iter<I: IntoIterator<Item = BigRational>>(values: I) -> Self {
        Self(values.into_iter().map(Rational).collect())
    }
}

impl FromIterator<i64> for Rationals {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        Self(values.into_iter().map(Rational::from).collect())
    }
}

impl Rationals {
    /// Returns whether the numbers of a client's list are no longer than lines could make them, and
    /// not too many of them are long.
    pub fn are_short(&self) -> bool {
        let total: u64 =
            self.iter().map(|value| value.0.numer().bits() + value.0.denom().bits()).sum();
        self.bits() < BITS_MAX && total < TOTAL_BITS_MAX
    }

    /// Bits of the longest numerator or denominator.
    fn bits(&self) -> u64 {
        self.iter().map(Rational::bits).max().unwrap_or(0)
    }

    /// Returns whether no entry of `self + factor · other` can become too long for a state.
    pub fn has_room_for(&self, factor: &Rational, other: &Self) -> bool {
        self.bits() + factor.bits() + other.bits() < BITS_MAX
    }

    /// Returns whether no entry of `self / divisor` can become too long for a state.
    pub fn has_room_over(&self, divisor: &Rational) -> bool {
        self.bits() + divisor.bits() < BITS_MAX
    }

    /// `self + factor · other`, place by place.
    #[must_use]
    pub fn plus(&self, factor: &BigRational, other: &Self) -> Self {
        let sum = |(ours, theirs): (&Rational, &Rational)| {
            if theirs.0.is_zero() { ours.0.clone() } else { &ours.0 + factor * &theirs.0 }
        };
        self.iter().zip(other.iter()).map(sum).collect()
    }

    /// `self / divisor`; the divisor is not 0.
    #[must_use]
    pub fn over(&self, divisor: &BigRational) -> Self {
        self.iter().map(|value| &value.0 / divisor).collect()
    }
}
