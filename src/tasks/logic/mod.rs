//! The logic tasks of PRIME-Bench, one file each.

mod first_order;
mod lambda_reduction;
mod lambda_term;
mod random_program;
mod simple_type;
mod type_inference;
mod type_program;
mod unification;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<unification::Unification>::new(),
    &Of::<type_inference::TypeInference>::new(),
    &Of::<lambda_reduction::LambdaReduction>::new(),
];
