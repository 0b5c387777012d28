//! The logic tasks of PRIME-Bench, one file each.

mod clause_counts;
mod dependency_sat;
mod literals;
mod packages;
mod random_clauses;
mod resolution_proof;
mod sat_dpll;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<sat_dpll::SatDpll>::new(),
    &Of::<resolution_proof::ResolutionProof>::new(),
    &Of::<dependency_sat::DependencySat>::new(),
];
