//! The logic tasks of PRIME-Bench, one file each.

mod clause_counts;
mod dependency_sat;
mod first_order;
mod lambda_reduction;
mod lambda_term;
mod literals;
mod packages;
mod random_clauses;
mod random_program;
mod resolution_proof;
mod sat_dpll;
mod scheme;
mod simple_type;
mod type_inference;
mod type_program;
mod unification;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<sat_dpll::SatDpll>::new(),
    &Of::<resolution_proof::ResolutionProof>::new(),
    &Of::<unification::Unification>::new(),
    &Of::<type_inference::TypeInference>::new(),
    &Of::<lambda_reduction::LambdaReduction>::new(),
    &Of::<dependency_sat::DependencySat>::new(),
];
