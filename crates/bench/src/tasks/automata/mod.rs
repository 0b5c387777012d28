//! The automata of PRIME-Bench, one file each.

mod automaton;
pub mod cellular_automaton;
pub mod dfa_simulation;
pub mod markov_chain;
pub mod nfa_simulation;
pub mod pda_execution;
pub mod petri_net;
pub mod register_machine;
#[cfg(test)]
mod tests;
pub mod turing_machine;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<dfa_simulation::DfaSimulation>::new(),
    &Erased::<nfa_simulation::NfaSimulation>::new(),
    &Erased::<pda_execution::PdaExecution>::new(),
    &Erased::<turing_machine::TuringMachine>::new(),
    &Erased::<register_machine::RegisterMachine>::new(),
    &Erased::<petri_net::PetriNet>::new(),
    &Erased::<cellular_automaton::CellularAutomaton>::new(),
    &Erased::<markov_chain::MarkovChain>::new(),
];
