//! Turing Machine: the symbol read with its entry in the row of the state.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::turing_machine::{Instance, State, TuringMachine};

use crate::Lesson;

pub struct TuringMachineLesson;

impl Lesson for TuringMachineLesson {
    type Task = TuringMachine;

    fn view(instance: &Instance, state: &State) -> String {
        let row = usize::try_from(state.q).ok().and_then(|q| instance.delta.get(q));
        let entries: Vec<_> = row
            .into_iter()
            .flat_map(|row| instance.symbols.chars().zip(row))
            .map(|(symbol, entry)| format!("{symbol}:{entry}"))
            .collect();
        let entries = if entries.is_empty() { "-".to_owned() } else { entries.join(" ") };
        format!("{} of {entries}", state.symbol())
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        TuringMachine::reference(instance, state).map(|entry| format!("{}:{entry}", state.symbol()))
    }
}
