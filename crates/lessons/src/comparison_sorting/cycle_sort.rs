//! Cycle Sort: at the end of a scan, compares each cell with the item in hand and counts the lesser
//! ones up.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::comparison_sorting::Input;
use prime_bench::tasks::comparison_sorting::cycle_sort::{Action, CycleSort, State};

use crate::Lesson;
use crate::numbers::{place, up_to_difference, value};

pub struct CycleSortLesson;

impl Lesson for CycleSortLesson {
    type Task = CycleSort;

    fn view(_: &Input, state: &State) -> String {
        let n = state.a.len();
        let cycle = format!("n={n:02} start={}", place(state.start, 2));

        match state.last.0 {
            None => "start".to_owned(),
            Some(Action::Take(c)) => format!("take {c:02}"),
            // The cells are needed only after the scan.
            Some(Action::Cmp(i)) if i + 1 < n => format!("n={n:02} cmp {i:02}"),
            Some(Action::Cmp(_)) => {
                let mut line = format!("{cycle} puts={:02} item={}", state.puts, value(state.item));
                for (place, cell) in state.a.iter().enumerate().skip(state.start.unwrap_or(n)) {
                    line += &format!(" {place:02}{cell:+05}");
                }
                line
            }
            Some(Action::Put(p)) => format!("{cycle} put {p:02}"),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = CycleSort::reference(input, state)?;
        let n = state.a.len();

        match state.last.0 {
            Some(Action::Cmp(i)) if i + 1 < n => Some(format!("{:02}/{n:02}", i + 1)),
            Some(Action::Cmp(_)) => after_scan(state, action),
            Some(Action::Put(p)) => {
                let start = state.start?;
                let closed =
                    if p == start { format!(" {}", after_cycle(start, n)) } else { String::new() };
                Some(format!("{p:02}/{start:02}{closed}"))
            }
            _ => Some(String::new()),
        }
    }
}

/// The cell after the next start, compared with the end: no cycle starts at the last cell.
fn after_cycle(start: usize, n: usize) -> String {
    format!("{:02}/{n:02}", start + 2)
}

/// Counts the place of the item up over the cells after the start, then past the cells that equal
/// it.
fn after_scan(state: &State, action: Action) -> Option<String> {
    let (start, item) = (state.start?, state.item?);

    let mut place = start;
    let mut steps = Vec::new();
    for (cell, x) in state.a.iter().enumerate().skip(start + 1) {
        place += usize::from(*x < item);
        steps.push(format!("{cell:02}{}{place:02}", up_to_difference(*x, item)));
    }

    steps.push(format!("puts {:02} {place:02}/{start:02}", state.puts));

    if let Action::Put(free) = action {
        // Cells that equal the item push it on to the first place that is free.
        for cell in place..=free {
            steps.push(format!("{cell:02}{}", up_to_difference(state.a[cell], item)));
        }
    } else {
        steps.push(after_cycle(start, state.a.len()));
    }

    Some(steps.join(" "))
}
