//! PDA Execution: the move of the state and the stack's top that reads nothing or the next letter.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::pda_execution::{Instance, Move, PdaExecution, State};

use crate::Lesson;

pub struct PdaExecutionLesson;

impl Lesson for PdaExecutionLesson {
    type Task = PdaExecution;

    fn view(instance: &Instance, state: &State) -> String {
        let next = instance.word.get(state.pos..=state.pos).unwrap_or("-");
        let or = |text: &str, none: &str| {
            if text.is_empty() { none.to_owned() } else { text.to_owned() }
        };

        let moves: Vec<_> = instance
            .delta
            .iter()
            .filter(|Move(q, _, top, ..)| *q == state.q && Some(*top) == state.top())
            .map(|Move(_, letter, _, q, push)| {
                format!("{}:q{q} {}", or(letter, "eps"), or(push, "-"))
            })
            .collect();

        format!("{next} of {}", or(&moves.join(" "), "-"))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = PdaExecution::reference(instance, state)?;

        let reads = |letter: &str| {
            state.top().is_some_and(|top| instance.find(state.q, letter, top).is_some())
        };
        let letter = instance
            .word
            .get(state.pos..=state.pos)
            .filter(|letter| reads(letter))
            .unwrap_or("eps");

        Some(format!("{letter}:{action}"))
    }
}
