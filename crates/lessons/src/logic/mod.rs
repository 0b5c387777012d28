//! Logic: a lesson a file.

mod dependency_sat;
mod lambda_reduction;
mod resolution_proof;
mod sat_dpll;
mod type_inference;
mod unification;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<resolution_proof::Of>(),
    AnyLesson::of::<unification::Of>(),
    AnyLesson::of::<type_inference::Of>(),
    AnyLesson::of::<lambda_reduction::Of>(),
    AnyLesson::of::<dependency_sat::Of>(),
    AnyLesson::of::<sat_dpll::Of>(),
];
