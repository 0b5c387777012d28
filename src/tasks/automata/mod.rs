//! The automata of PRIME-Bench, one file each.

mod dfa_simulation;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[&Of::<dfa_simulation::DfaSimulation>::new()];
