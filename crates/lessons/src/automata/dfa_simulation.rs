//! DFA Simulation: the row of the transition table, then the entry of the letter read.

use prime_bench::tasks::automata::dfa_simulation::{DfaSimulation, Instance, State};

use crate::Lesson;

pub struct DfaSimulationLesson;

impl Lesson for DfaSimulationLesson {
    type Task = DfaSimulation;

    fn view(instance: &Instance, state: &State) -> String {
        let letter = instance.word.as_bytes().get(state.pos).map_or('-', |c| char::from(*c));
        let row: Vec<_> = instance
            .alphabet
            .chars()
            .zip(&instance.delta[state.q])
            .map(|(letter, target)| format!("{letter}:{target:02}"))
            .collect();

        format!("q={:02} reads {letter} row {}", state.q, row.join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let column = instance.column(state.pos)?;
        let letter = char::from(instance.word.as_bytes()[state.pos]);
        Some(format!("{letter}:{:02}", instance.delta[state.q][column]))
    }
}
