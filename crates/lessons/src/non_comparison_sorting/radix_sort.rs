//! Radix Sort: nothing to derive; the action copies the digit at the index.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::non_comparison_sorting::radix_sort::{Action, Instance, RadixSort, State};

use crate::Lesson;
use crate::numbers::indexed_digits;

pub struct RadixSortLesson;

impl Lesson for RadixSortLesson {
    type Task = RadixSort;

    fn view(instance: &Instance, state: &State) -> String {
        let State { digit, order, buckets, .. } = state;
        let d = instance.d;

        let next = match order.get(buckets.joined().len()).map(|i| *i as usize) {
            Some(i) => format!("{i:03} {}", indexed_digits(instance.a[i], d as usize)),
            None => "-".to_owned(),
        };

        match state.last.0 {
            None | Some(Action::Gather) => format!("gather {digit}/{d} next {next}"),
            Some(Action::Put(..)) => format!("put {digit} next {next}"),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        RadixSort::reference(instance, state).map(|_| String::new())
    }
}
