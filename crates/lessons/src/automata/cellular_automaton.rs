//! Cellular Automaton: the rule's bit for the three cells above.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::cellular_automaton::{CellularAutomaton, Instance, State};

use crate::Lesson;

pub struct CellularAutomatonLesson;

impl Lesson for CellularAutomatonLesson {
    type Task = CellularAutomaton;

    fn view(instance: &Instance, state: &State) -> String {
        // Cells beyond the ends are shown as the boundary has them.
        let above = instance.neighbourhood(state.cells.as_bytes(), state.next.len());
        format!("{above:03b} {:08b}", instance.rule)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        CellularAutomaton::reference(instance, state).map(|_| String::new())
    }
}
