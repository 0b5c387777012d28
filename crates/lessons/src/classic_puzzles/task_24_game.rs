//! 24-Game: tries each calculation of the last three values, and checks if the two values that it
//! leaves make the target.
// With more values the choice is learnt by heart: its search is too long to write down.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::arithmetic_search::{Value, calcs, calculated, makes};
use prime_bench::tasks::classic_puzzles::task_24_game::{Action, Game24, Instance, State};

use crate::Lesson;

pub struct Game24Lesson;

/// The most values whose calculations are all tried.
const TRIED: usize = 3;

impl Lesson for Game24Lesson {
    type Task = Game24;

    fn view(_: &Instance, state: &State) -> String {
        let values: Vec<_> = state
            .values
            .iter()
            .enumerate()
            .map(|(place, value)| format!("{place}:{value}"))
            .collect();
        values.join(" ")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        Game24::reference(instance, state)?;

        let mut steps = Vec::new();
        for (left, operator, right) in
            calcs(state.values.len()).filter(|_| state.values.len() <= TRIED)
        {
            let Some(rest) = calculated(&state.values, left, operator, right) else { continue };
            let reaches = makes(&rest, Value::from_integer(instance.target));

            let result = rest.last()?;
            steps.push(format!(
                "{left}{operator}{right}={result}{}",
                if reaches { '!' } else { ' ' }
            ));

            if reaches {
                break;
            }
        }

        Some(steps.concat())
    }

    /// With more values than are tried: another calculation that has a small whole result and keeps
    /// the target within reach.
    fn alternatives(instance: &Instance, state: &State) -> Vec<(Action, String)> {
        let count = state.values.len();
        let reference = Game24::reference(instance, state);
        if count <= TRIED || reference.is_none() {
            return Vec::new();
        }

        let target = Value::from_integer(instance.target);
        let others = calcs(count).filter(|(left, operator, right)| {
            calculated(&state.values, *left, *operator, *right).is_some_and(|rest| {
                let result = rest[count - 2];
                let is_small =
                    result.is_integer() && (0..=instance.target).contains(&result.to_integer());
                is_small && makes(&rest, target)
            })
        });

        others
            .map(Action::from)
            .filter(|other| Some(*other) != reference)
            .map(|other| (other, String::new()))
            .collect()
    }
}
