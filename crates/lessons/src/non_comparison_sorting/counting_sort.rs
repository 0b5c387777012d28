//! Counting Sort: counts the place up or down, whether there is a further sum, and takes one from
//! the count of a value.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::non_comparison_sorting::counting_sort::{
    Action, CountingSort, Instance, State,
};

use crate::Lesson;
use crate::numbers::{compared, low_first, place};

pub struct CountingSortLesson;

impl Lesson for CountingSortLesson {
    type Task = CountingSort;

    fn view(instance: &Instance, state: &State) -> String {
        let (n, k) = (instance.a.len(), instance.k);
        let value = |i: Option<usize>| i.and_then(|i| instance.a.get(i)).copied();
        let counted = |i: Option<usize>| value(i).and_then(|v| state.count.get(v));
        let count = |i| counted(i).map_or_else(|| "-".to_owned(), |count| format!("{count:04}"));

        match state.last.0 {
            None => format!("start next {}", place(value(Some(0)), 3)),
            Some(Action::Count(i, _)) => {
                let next = value(i.checked_add(1));
                // After the last place come the sums, from 1 to k.
                let sums = if next.is_none() { format!(" k={k:03}") } else { String::new() };
                format!("count {i:04} next {}{sums}", place(next, 3))
            }
            Some(Action::Sum(v)) => {
                format!("sum {v:03}/{k:03} n={n:04} count {}", count(n.checked_sub(1)))
            }
            Some(Action::Place(i, _)) => format!("place {i:04} count {}", count(i.checked_sub(1))),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = CountingSort::reference(instance, state)?;

        Some(match (state.last.0, action) {
            (Some(Action::Count(..)), Action::Count(i, _)) => low_first(i, 4),
            (Some(Action::Sum(done)), Action::Sum(v)) => {
                format!("{} {}", compared(done, instance.k, 3), low_first(v, 3))
            }
            (Some(Action::Sum(done)), Action::Place(i, p)) => {
                format!("{} {} {}", compared(done, instance.k, 3), low_first(i, 4), low_first(p, 4))
            }
            (_, Action::Place(i, p)) => format!("{} {}", low_first(i, 4), low_first(p, 4)),
            _ => String::new(),
        })
    }
}
