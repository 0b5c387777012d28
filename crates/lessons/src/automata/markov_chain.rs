//! Markov Chain: takes the weights of the row from the draw until nothing is left.
// Numbers have their lowest digit first. A difference is written modulo 1000 with its sign behind, which is the last borrow.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::markov_chain::{Instance, MarkovChain, State};

use crate::Lesson;
use crate::numbers::low_first;

pub struct Of;

const WIDTH: usize = 3;

impl Lesson for Of {
    type Task = MarkovChain;

    fn view(instance: &Instance, state: &State) -> String {
        let number = |number: u64| usize::try_from(number).map_or_else(|_| "-".to_owned(), |n| low_first(n, WIDTH));
        let draw = instance.draws.get(state.t).map_or_else(|| "-".to_owned(), |draw| number(*draw));
        let row: Vec<_> = (0..)
            .zip(instance.weights.get(state.s).into_iter().flatten())
            .map(|(entry, weight)| format!("{entry}:{}", number(*weight)))
            .collect();
        format!("{draw} {}", row.join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        MarkovChain::reference(instance, state)?;
        let mut rest = usize::try_from(*instance.draws.get(state.t)?).ok()?;
        let mut line = Vec::new();
        for (entry, weight) in instance.weights[state.s].iter().enumerate() {
            let weight = usize::try_from(*weight).ok()?;
            let selected = weight > rest;
            // Weights are at most 1000.
            rest = (1_000 + rest - weight) % 1_000;
            line.push(format!("{entry}:{}{}", low_first(rest, WIDTH), if selected { '-' } else { '+' }));
            if selected {
                break;
            }
        }
        Some(line.join(" "))
    }
}
