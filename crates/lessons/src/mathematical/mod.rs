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
    AnyLesson::of::<long_division::Of>(),
    AnyLesson::of::<matrix_multiply::Of>(),
    AnyLesson::of::<gcd_euclidean::Of>(),
    AnyLesson::of::<polynomial_gcd::Of>(),
    AnyLesson::of::<symbolic_diff::Of>(),
    AnyLesson::of::<gaussian_elimination::Of>(),
    AnyLesson::of::<simplex_method::Of>(),
    AnyLesson::of::<continued_fraction::Of>(),
];
