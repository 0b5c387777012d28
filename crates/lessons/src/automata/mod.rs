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
    AnyLesson::of::<dfa_simulation::Of>(),
    AnyLesson::of::<nfa_simulation::Of>(),
    AnyLesson::of::<pda_execution::Of>(),
    AnyLesson::of::<turing_machine::Of>(),
    AnyLesson::of::<register_machine::Of>(),
    AnyLesson::of::<petri_net::Of>(),
    AnyLesson::of::<cellular_automaton::Of>(),
    AnyLesson::of::<markov_chain::Of>(),
];
