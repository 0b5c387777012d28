//! The mathematical tasks of PRIME-Bench, one file each.

mod continued_fraction;
mod decimal;
mod expression;
mod gaussian_elimination;
mod gcd_euclidean;
pub mod long_division;
mod matrix_multiply;
mod numeric;
mod polynomial;
mod polynomial_gcd;
mod rationals;
mod simplex_method;
mod symbolic_diff;
mod template_value;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<long_division::LongDivision>::new(),
    &Of::<matrix_multiply::MatrixMultiply>::new(),
    &Of::<gaussian_elimination::GaussianElimination>::new(),
    &Of::<gcd_euclidean::GcdEuclidean>::new(),
    &Of::<simplex_method::SimplexMethod>::new(),
    &Of::<polynomial_gcd::PolynomialGcd>::new(),
    &Of::<continued_fraction::ContinuedFraction>::new(),
    &Of::<symbolic_diff::SymbolicDiff>::new(),
];
