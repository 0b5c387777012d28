//! The automata of PRIME-Bench, one file each.

mod automaton;
mod cellular_automaton;
pub mod dfa_simulation;
mod markov_chain;
mod nfa_simulation;
mod pda_execution;
mod petri_net;
mod register_machine;
#[cfg(test)]
mod tests;
mod turing_machine;

use super::AnyTask;
use super::machine::Erased;

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
