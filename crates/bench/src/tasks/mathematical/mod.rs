//! The mathematical tasks of PRIME-Bench, one file each.

pub mod continued_fraction;
pub mod decimal;
pub mod expression;
#[cfg(test)]
mod fooled;
pub mod gaussian_elimination;
pub mod gcd_euclidean;
pub mod long_division;
pub mod matrix_multiply;
mod numeric;
pub mod polynomial;
pub mod polynomial_gcd;
pub mod rationals;
pub mod simplex_method;
pub mod symbolic_diff;
mod template_value;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<long_division::LongDivision>::new(),
    &Erased::<matrix_multiply::MatrixMultiply>::new(),
    &Erased::<gaussian_elimination::GaussianElimination>::new(),
    &Erased::<gcd_euclidean::GcdEuclidean>::new(),
    &Erased::<simplex_method::SimplexMethod>::new(),
    &Erased::<polynomial_gcd::PolynomialGcd>::new(),
    &Erased::<continued_fraction::ContinuedFraction>::new(),
    &Erased::<symbolic_diff::SymbolicDiff>::new(),
];
