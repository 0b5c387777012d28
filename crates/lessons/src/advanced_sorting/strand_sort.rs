//! Strand Sort: compares the next element with the end of the strand, or the heads of a merge.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::strand_sort::{Action, State, StrandSort};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::numbers::{comparison, value};

pub struct StrandSortLesson;

impl Lesson for StrandSortLesson {
    type Task = StrandSort;

    fn view(_: &Input, state: &State) -> String {
        let heads = || {
            format!(
                "out {} strand {}",
                value(state.out.first().copied()),
                value(state.strand.first().copied())
            )
        };

        match state.last.0 {
            None | Some(Action::End) => format!("end rest {}", value(state.rest.first().copied())),
            Some(Action::Start | Action::Pull | Action::Skip) => match state.rest.get(state.i) {
                Some(next) => {
                    format!("next {next:+05} tail {}", value(state.strand.last().copied()))
                }
                None => format!("next - {}", heads()),
            },
            Some(Action::Out | Action::Strand) => heads(),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        StrandSort::reference(input, state)?;

        let pair = match state.last.0 {
            Some(Action::Start | Action::Pull | Action::Skip) if state.i < state.rest.len() => {
                Some((state.rest[state.i], *state.strand.last()?))
            }
            None | Some(Action::End | Action::Done) => None,
            Some(_) => state.out.first().copied().zip(state.strand.first().copied()),
        };

        Some(pair.map_or_else(String::new, |(x, y)| comparison(x, y)))
    }
}
