//! Mathematics: a lesson a file; `common_divisors` and `residues` belong to Gaussian elimination.

mod common_divisors;
mod continued_fraction;
mod gaussian_elimination;
mod gcd_euclidean;
mod long_division;
mod matrix_multiply;
mod polynomial_gcd;
mod residues;
mod simplex_method;
mod symbolic_diff;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<long_division::LongDivisionLesson>(),
    AnyLesson::of::<matrix_multiply::MatrixMultiplyLesson>(),
    AnyLesson::of::<gcd_euclidean::GcdEuclideanLesson>(),
    AnyLesson::of::<polynomial_gcd::PolynomialGcdLesson>(),
    AnyLesson::of::<symbolic_diff::SymbolicDiffLesson>(),
    AnyLesson::of::<gaussian_elimination::GaussianEliminationLesson>(),
    AnyLesson::of::<simplex_method::SimplexMethodLesson>(),
    AnyLesson::of::<continued_fraction::ContinuedFractionLesson>(),
];
