//! Polynomials with rational coefficients, highest degree first; no coefficients for 0.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

use super::rationals::Rationals;
use crate::tasks::Rational;

/// A polynomial over the rationals: its coefficients, the leading one first; none for 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Polynomial(Rationals);

impl Polynomial {
    /// The polynomial with these coefficients, the leading one first.
    pub fn of(coefficients: &[i64]) -> Self {
        Self(coefficients.iter().copied().collect())
    }

    /// Returns whether a client's polynomial has at most this many coefficients, none of them too
    /// long and the first other than 0.
    pub fn is_at_most(&self, coefficients: usize) -> bool {
        self.0.len() <= coefficients
            && self.0.are_short()
            && self.leading().is_none_or(|leading| !leading.0.is_zero())
    }

    /// Returns whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// `None` for 0.
    pub fn degree(&self) -> Option<usize> {
        self.0.len().checked_sub(1)
    }

    /// The leading coefficient; `None` for 0.
    pub fn leading(&self) -> Option<&Rational> {
        self.0.first()
    }

    /// Returns whether the leading coefficient is 1.
    pub fn is_monic(&self) -> bool {
        self.leading().is_some_and(|leading| *leading == Rational::from(1))
    }

    /// Returns whether no coefficient of `self + factor · other` can become too long for a state.
    pub fn has_room_for(&self, factor: &Rational, other: &Self) -> bool {
        self.0.has_room_for(factor, &other.0)
    }

    /// Returns whether no coefficient of `self / divisor` can become too long for a state.
    pub fn has_room_over(&self, divisor: &Rational) -> bool {
        self.0.has_room_over(divisor)
    }

    /// `self - factor · t^shift · other`.
    #[must_use]
    pub fn minus(&self, factor: &Rational, shift: usize, other: &Self) -> Self {
        let len = self.0.len().max(if other.is_zero() { 0 } else { other.0.len() + shift });
        let at = |list: &Rationals, place: usize, shift: usize| -> BigRational {
            // `place` counts from the lowest coefficient.
            let index =
                place.checked_sub(shift).and_then(|place| list.len().checked_sub(place + 1));
            index.map_or_else(BigRational::zero, |index| list[index].0.clone())
        };

        let difference =
            |place: usize| at(&self.0, place, 0) - &factor.0 * at(&other.0, place, shift);
        Self((0..len).rev().map(difference).skip_while(Zero::is_zero).collect())
    }

    /// `self / divisor`; the divisor is not 0.
    #[must_use]
    pub fn over(&self, divisor: &Rational) -> Self {
        Self(self.0.over(&divisor.0))
    }

    /// Returns whether this polynomial, which is monic, divides the other.
    ///
    /// Multiplied by its common denominator it is primitive, so that by Gauss's lemma the quotient
    /// has integer coefficients: the first one that is not an integer ends the division, before
    /// wrong coefficients grow.
    pub fn divides(&self, coefficients: &[i64]) -> bool {
        let mut rest: Vec<BigInt> = coefficients.iter().copied().map(BigInt::from).collect();
        rest.reverse();
        let Some(top) = rest.last().filter(|top| !top.is_zero()).cloned() else {
            return coefficients.is_empty();
        };

        // Multiplied so, the leading coefficient is the common denominator, which must divide the
        // other's.
        if self.0.iter().any(|c| !top.is_multiple_of(c.0.denom())) {
            return false;
        }

        let common = self.0.iter().fold(BigInt::one(), |common, c| common.lcm(c.0.denom()));
        let divisor: Vec<BigInt> =
            self.0.iter().rev().map(|c| c.0.numer() * (&common / c.0.denom())).collect();

        while rest.len() >= divisor.len() {
            let (factor, left) = rest[rest.len() - 1].div_rem(&common);
            if !left.is_zero() {
                return false;
            }

            let shift = rest.len() - divisor.len();
            for (entry, c) in rest[shift..].iter_mut().zip(&divisor) {
                *entry -= &factor * c;
            }
            rest.pop();
        }

        rest.iter().all(Zero::is_zero)
    }
}
