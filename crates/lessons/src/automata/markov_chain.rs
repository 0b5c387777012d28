//! Markov Chain: takes the weights of the row from the draw until nothing is left.
// Numbers have their lowest digit first. The last borrow of a difference tells that the entry is
// selected.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::automata::markov_chain::{Instance, MarkovChain, State};

use crate::Lesson;
use crate::numbers::{difference, low_first};

pub struct MarkovChainLesson;

const WIDTH: usize = 3;

impl Lesson for MarkovChainLesson {
    type Task = MarkovChain;

    fn view(instance: &Instance, state: &State) -> String {
        let number = |number: u64| {
            usize::try_from(number).map_or_else(|_| "-".to_owned(), |n| low_first(n, WIDTH))
        };
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
            line.push(format!("{entry}:{}", difference(rest, weight, WIDTH)));
            let Some(left) = rest.checked_sub(weight) else { break };
            rest = left;
        }

        Some(line.join(" "))
    }
}
