//! The logic tasks of PRIME-Bench, one file each.

mod clause_counts;
pub mod dependency_sat;
pub mod first_order;
#[cfg(test)]
mod fooled;
pub mod lambda_reduction;
pub mod lambda_term;
pub mod literals;
mod packages;
mod random_clauses;
mod random_program;
mod requirements;
pub mod resolution_proof;
pub mod sat_dpll;
mod scheme;
pub mod simple_type;
#[cfg(test)]
mod tests;
pub mod type_inference;
pub mod type_program;
mod typing_rules;
pub mod unification;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<sat_dpll::SatDpll>::new(),
    &Erased::<resolution_proof::ResolutionProof>::new(),
    &Erased::<unification::Unification>::new(),
    &Erased::<type_inference::TypeInference>::new(),
    &Erased::<lambda_reduction::LambdaReduction>::new(),
    &Erased::<dependency_sat::DependencySat>::new(),
];
