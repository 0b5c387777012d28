//! Automata: a lesson a file.

mod cellular_automaton;
mod dfa_simulation;
mod markov_chain;
mod nfa_simulation;
mod pda_execution;
mod petri_net;
mod register_machine;
mod turing_machine;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<dfa_simulation::DfaSimulationLesson>(),
    AnyLesson::of::<nfa_simulation::NfaSimulationLesson>(),
    AnyLesson::of::<pda_execution::PdaExecutionLesson>(),
    AnyLesson::of::<turing_machine::TuringMachineLesson>(),
    AnyLesson::of::<register_machine::RegisterMachineLesson>(),
    AnyLesson::of::<petri_net::PetriNetLesson>(),
    AnyLesson::of::<cellular_automaton::CellularAutomatonLesson>(),
    AnyLesson::of::<markov_chain::MarkovChainLesson>(),
];
