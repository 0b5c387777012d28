//! Logic: a lesson a file.

mod dependency_sat;
mod lambda_reduction;
mod resolution_proof;
mod sat_dpll;
mod type_inference;
mod unification;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<resolution_proof::ResolutionProofLesson>(),
    AnyLesson::of::<unification::UnificationLesson>(),
    AnyLesson::of::<type_inference::TypeInferenceLesson>(),
    AnyLesson::of::<lambda_reduction::LambdaReductionLesson>(),
    AnyLesson::of::<dependency_sat::DependencySatLesson>(),
    AnyLesson::of::<sat_dpll::SatDpllLesson>(),
];
