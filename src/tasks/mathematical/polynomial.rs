//! Polynomials with rational coefficients, highest degree first; no coefficients for 0.

use num_rational::BigRational;
use num_traits::Zero;
use serde::Serialize;

use super::rationals::Rationals;
use crate::tasks::Rational;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Polynomial(Rationals);

impl Polynomial {
    pub fn of(coefficients: &[i64]) -> Self {
        Self(coefficients.iter().copied().collect())
    }

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

    pub fn is_monic(&self) -> bool {
        self.leading().is_some_and(|leading| *leading == Rational::from(1))
    }

    /// Whether no coefficient of `self + factor · other` can become too long for a state.
    pub fn has_room_for(&self, factor: &Rational, other: &Self) -> bool {
        self.0.has_room_for(factor, &other.0)
    }

    /// Whether no coefficient of `self / divisor` can become too long for a state.
    pub fn has_room_over(&self, divisor: &Rational) -> bool {
        self.0.has_room_over(divisor)
    }

    /// `self - factor · t^shift · other`.
    #[must_use]
    pub fn minus(&self, factor: &Rational, shift: usize, other: &Self) -> Self {
        let len = self.0.len().max(if other.is_zero() { 0 } else { other.0.len() + shift });
        let at = |list: &Rationals, place: usize, shift: usize| -> BigRational {
            // `place` counts from the lowest coefficient.
            let index = place.checked_sub(shift).and_then(|place| list.len().checked_sub(place + 1));
            index.map_or_else(BigRational::zero, |index| list[index].0.clone())
        };
        let difference = |place: usize| at(&self.0, place, 0) - &factor.0 * at(&other.0, place, shift);
        Self((0..len).rev().map(difference).skip_while(Zero::is_zero).collect())
    }

    /// `self / divisor`; the divisor is not 0.
    #[must_use]
    pub fn over(&self, divisor: &Rational) -> Self {
        Self(self.0.over(&divisor.0))
    }

    /// Whether this polynomial, not 0, divides the other.
    pub fn divides(&self, other: &Self) -> bool {
        let mut rest = other.clone();
        while let (Some(ours), Some(theirs)) = (self.leading(), rest.leading()) {
            let Some(shift) = rest.0.len().checked_sub(self.0.len()) else { return false };
            rest = rest.minus(&Rational(&theirs.0 / &ours.0), shift, self);
        }
        rest.is_zero()
    }
}
