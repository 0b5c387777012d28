//! Patience Sort: compares the tops of the piles with the next card, or with the least top so far.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::patience_sort::{PatienceSort, State};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::numbers::up_to_difference;

pub struct PatienceSortLesson;

impl Lesson for PatienceSortLesson {
    type Task = PatienceSort;

    fn view(input: &Input, state: &State) -> String {
        let next = state.back.len();
        let mut line = match input.a.get(next) {
            Some(card) => format!("next {next:03} {card:+05}"),
            None => "next -".to_owned(),
        };

        for (pile, top) in tops(input, state) {
            line += &format!(" {pile:02}{top:+05}");
        }

        line
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        PatienceSort::reference(input, state)?;
        let card = input.a.get(state.back.len()).copied();
        let mut steps = Vec::new();
        let mut least = None;

        for (pile, top) in tops(input, state) {
            match (card, least) {
                // The card goes to the first pile whose top is not less.
                (Some(card), _) => {
                    steps.push(format!("{pile:02}{}", up_to_difference(top, card)));
                    if top >= card {
                        break;
                    }
                }
                (None, Some(least)) if top >= least => {
                    steps.push(format!("{pile:02}{}", up_to_difference(top, least)));
                }
                // A new least top follows a colon.
                (None, before) => {
                    let compared =
                        before.map_or_else(String::new, |least| up_to_difference(top, least));
                    steps.push(format!("{pile:02}{compared}:{top:+05}"));
                    least = Some(top);
                }
            }
        }

        Some(steps.join(" "))
    }
}

/// The piles that are not empty, each with the value of its top.
fn tops(input: &Input, state: &State) -> impl Iterator<Item = (usize, i64)> {
    let top = |pile: &Vec<usize>| pile.last().and_then(|card| input.a.get(*card)).copied();
    state.piles.iter().enumerate().filter_map(move |(pile, cards)| Some((pile, top(cards)?)))
}
