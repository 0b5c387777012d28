//! The automata of PRIME-Bench, one file each.

mod automaton;
mod cellular_automaton;
pub mod dfa_simulation;
mod markov_chain;
mod nfa_simulation;
mod pda_execution;
mod petri_net;
mod register_machine;
mod turing_machine;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<dfa_simulation::DfaSimulation>::new(),
    &Of::<nfa_simulation::NfaSimulation>::new(),
    &Of::<pda_execution::PdaExecution>::new(),
    &Of::<turing_machine::TuringMachine>::new(),
    &Of::<register_machine::RegisterMachine>::new(),
    &Of::<petri_net::PetriNet>::new(),
    &Of::<cellular_automaton::CellularAutomaton>::new(),
    &Of::<markov_chain::MarkovChain>::new(),
];
