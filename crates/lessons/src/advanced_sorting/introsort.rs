//! Introsort: sifts and insertions read the cells that they pass; a partition compares with the
//! pivot and counts.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::introsort::{Action, Introsort, State};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::cells::{self, bisection, look_up, middle};
use crate::numbers::{
    compared, comparison, counter, difference, doubled_plus_one, low_first, place,
    up_to_difference, value, value_at,
};
use crate::reads::looked_up;

pub struct IntrosortLesson;

impl Lesson for IntrosortLesson {
    type Task = Introsort;

    fn view(_: &Input, state: &State) -> String {
        let a = &state.a;
        let [lo, hi, i, size] =
            [state.lo, state.hi, state.i, state.size].map(|number| place(number, 3));
        let top = match state.stack.last() {
            Some((lo, hi, depth)) => format!("top {lo:03} {hi:03} {depth:02}"),
            None => "top -".to_owned(),
        };

        match state.last.0 {
            None => top,
            Some(Action::Pivot(_)) => format!("pivot {top}"),
            Some(Action::Leaf(lo, _)) => format!("leaf {lo:03}"),
            Some(Action::Insert(k, _)) => format!("insert {k:03} {lo} {hi} {top}"),
            Some(Action::Heap(lo, hi)) => format!("heap {lo:03} {hi:03}"),
            Some(Action::Sift(i, _)) => format!("sift {i:03} {size} {top}"),
            Some(Action::Pop(_)) => "pop".to_owned(),
            Some(Action::Part(lo, hi)) => format!("part {lo:03} {hi:03}"),
            Some(Action::Median(_)) => format!("median {lo} {hi}"),
            Some(Action::Cmp(j, end)) => {
                format!("cmp {j:03} {end:03} {} {} i={i}", value_at(a, j), value_at(a, end))
            }
            Some(Action::Swap(_, j)) => format!("swap {j:03} {hi} i={i}"),
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = Introsort::reference(input, state)?;
        let a = &state.a;

        // The size of the next range tells whether it is short: at most 16 cells.
        let next_range =
            || state.stack.last().map_or_else(String::new, |(lo, hi, _)| difference(*hi, *lo, 3));
        let insertion = |k: usize| {
            let (search, _) = bisection(a, state.lo?, k, *a.get(k)?)?;
            Some(look_up(a, k)? + &search)
        };
        // The next place of a partition beside that of the pivot.
        let after_place = |j: usize| Some(counted(j + 1, state.hi?.checked_sub(1)?));
        let previous = |number: usize| low_first(number.saturating_sub(1), 3);

        Some(match (state.last.0, action) {
            (Some(Action::Leaf(lo, _)), _) => {
                format!("{} {}", low_first(lo + 1, 3), insertion(lo + 1)?)
            }
            (Some(Action::Insert(k, _)), Action::Insert(next, _)) => {
                format!("{} {}", counted(k + 1, state.hi?), insertion(next)?)
            }
            (Some(Action::Insert(k, _)), _) => {
                format!("{} {}", counted(k + 1, state.hi?), next_range())
            }
            (Some(Action::Heap(lo, hi)), Action::Sift(i, _)) => {
                let half = (hi - lo) / 2;
                format!(
                    "{} {half:03} {} {}",
                    difference(hi, lo, 3),
                    low_first(i, 3),
                    sift(state, i)?
                )
            }
            (Some(Action::Sift(..)), Action::Sift(i, _)) => {
                format!("{} {}", low_first(i, 3), sift(state, i)?)
            }
            (Some(Action::Sift(..)), Action::Pop(_)) => previous(state.size?),
            (Some(Action::Pop(_)), _) => sift(state, 0)?,
            (Some(Action::Part(lo, hi)), _) => median(a, lo, hi)?,
            (Some(Action::Median(_)), _) => previous(state.hi?),
            (Some(Action::Cmp(j, end)), Action::Swap(..)) => comparison(a[j], a[end]),
            (Some(Action::Cmp(j, end)), _) => {
                format!("{} {}", comparison(a[j], a[end]), after_place(j)?)
            }
            (Some(Action::Swap(_, j)), _) => after_place(j)?,
            _ => next_range(),
        })
    }

    /// Enough for the longest sift: an element, then pairs of nodes down to the greatest heap's
    /// last level.
    const READS_MAX: usize = 12;

    /// `012` is a cell; `h012` are node 12 of the heap and its right neighbour, `-` where they are
    /// not in the heap.
    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        match address.strip_prefix('h') {
            Some(node) => siblings(state, cells::number(node, 3)?),
            None => cells::read(&state.a, address),
        }
    }
}

/// A place and the end that it counts up to, and which is greater.
fn counted(place: usize, end: usize) -> String {
    format!("{} {}", counter(place, end, 3), compared(place, end, 3))
}

/// The heap, if its size belongs to the range.
fn heap(state: &State) -> Option<&[i64]> {
    let lo = state.lo?;
    state.a.get(lo..lo + state.size?)
}

/// The values of a node and its right neighbour. Where the heap ends, its last nodes have no
/// children.
fn siblings(state: &State, node: usize) -> Option<String> {
    let heap = heap(state)?;
    let parent = node.saturating_sub(1) / 2;
    // The children of the last node may be missing, but no address lies beyond them.
    heap.get(parent)?;

    Some(match heap.get(node) {
        Some(left) => value(Some(*left)) + &value_at(heap, node + 1),
        None => "-".to_owned(),
    })
}

fn look_up_siblings(state: &State, node: usize) -> Option<String> {
    Some(looked_up(&format!("h{node:03}"), &siblings(state, node)?))
}

/// The way down of a node's element: the greater one of each pair of children, compared with the
/// element.
fn sift(state: &State, root: usize) -> Option<String> {
    let heap = heap(state)?;

    let element = *heap.get(root)?;
    let mut line = look_up_siblings(state, root)?;
    let mut node = root;
    loop {
        let left = 2 * node + 1;
        line += &format!("{} {}", doubled_plus_one(node, 3), look_up_siblings(state, left)?);
        // A leaf ends the way down.
        let Some(mut greatest) = heap.get(left).copied() else { return Some(line) };

        node = left;
        if let Some(right) = heap.get(left + 1) {
            line += &format!("{} ", up_to_difference(*right, greatest));
            if *right > greatest {
                (node, greatest) = (left + 1, *right);
            }
        }

        line += &format!("{} ", up_to_difference(greatest, element));
        if greatest <= element {
            return Some(line);
        }
    }
}

/// The first, middle and last cell of a range, compared with each other: the first with the last
/// only where the middle one is not between them.
fn median(a: &[i64], lo: usize, hi: usize) -> Option<String> {
    let (mid, last) = (usize::midpoint(lo, hi), hi.checked_sub(1)?);
    let (x, y, z) = (*a.get(lo)?, *a.get(mid)?, *a.get(last)?);

    let mut line = format!(
        "{}{}{}{} {}{} {}",
        look_up(a, lo)?,
        middle(lo, hi, 3),
        look_up(a, mid)?,
        low_first(last, 3),
        look_up(a, last)?,
        up_to_difference(x, y),
        up_to_difference(y, z)
    );

    if (x <= y) != (y <= z) {
        line += &format!(" {}", up_to_difference(x, z));
    }

    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_with_heap(heap: Vec<i64>) -> State {
        let mut state = Introsort::start(&Input { a: heap });
        (state.lo, state.size) = (Some(0), Some(state.a.len()));
        state
    }

    /// Ranges that meet the depth limit hold hardly more than one value, so traces have no long
    /// sifts.
    #[test]
    fn a_sift_goes_down_to_the_last_level() {
        let state = state_with_heap(vec![1, 8, 9, 3, 4, 7, 6]);
        let line = sift(&state, 0).expect("a heap");
        let levels = [
            "h000?=+0001+0008 010.000.000 h001?=+0008+0009 +00098g ",
            "+00091g 250.000.000 h005?=+0007+0006 +00067l ",
        ];

        assert!(line.starts_with(&levels.concat()), "{line}");
    }

    #[test]
    fn the_longest_sift_fits() {
        let heap: Vec<i64> =
            std::iter::once(-1000).chain((0..511).map(|node| 999 - node)).collect();
        let line = sift(&state_with_heap(heap), 0).expect("a heap");

        assert!(line.matches('?').count() <= IntrosortLesson::READS_MAX, "{line}");
        assert!(line.len() < 440, "{} bytes", line.len());
    }
}
