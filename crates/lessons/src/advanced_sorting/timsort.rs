//! Timsort: runs are read ten cells at a time, insertions and gallops search by halves, merges compare two values.
// The cells of a run are read with the last digits of their places as keys, and all values above the least, so that
// their digits compare alike whatever the sign. Of a run only the keys are written, or a long one would not fit.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::merge::Merge;
use prime_bench::tasks::advanced_sorting::timsort::{Action, State, Timsort};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::cells::{self, bisection, bisection_not_less, look_up, number};
use crate::numbers::{compared, comparison, counter, difference, sum, value_at};
use crate::reads::looked_up;

pub struct Of;

const WIDTH: usize = 3;

/// Cells of one read, of those that a run is found in: their places differ in the last digit alone.
const TEN: usize = 10;

impl Lesson for Of {
    type Task = Timsort;

    fn view(input: &Input, state: &State) -> String {
        let n = input.a.len();
        if let Some(merge) = &state.merge {
            let Merge { mid, hi, i, j, lw, rw, .. } = merge;
            let [left, right] = [(*i, *mid), (*j, *hi)].map(|(at, end)| {
                format!(
                    "{} {}",
                    counter(at, end, WIDTH),
                    if at < end { value_at(&state.a, at) } else { "-".to_owned() }
                )
            });
            return format!("merge {left} {right} won {lw} {rw}");
        }
        let pos = state.pos;
        match state.last.0 {
            Some(Action::Done) => "done".to_owned(),
            Some(Action::Run(..) | Action::Insert(..)) => {
                format!("run {pos:03} {:03} least {:02} of {n:03}", state.end, state.minrun)
            }
            _ => {
                let count = state.stack.len();
                let top: Vec<_> = state.stack.iter().rev().take(4).map(|[_, length]| format!("{length:03}")).collect();
                format!("stack {count} top {} next {pos:03} of {n:03}", top.join(" ")).replace("top  ", "")
            }
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = Timsort::reference(input, state)?;
        let a = &state.a;
        if let Some(merge) = &state.merge {
            return in_merge(a, merge, action);
        }
        Some(match (state.last.0, action) {
            (Some(Action::Run(..) | Action::Insert(..)), action) => {
                let (n, k, until) = (a.len(), state.end, state.pos + state.minrun);
                let added = sum(state.pos, state.minrun, WIDTH);
                let mut line = format!("{added} {until:03} {}", compared(k, until, WIDTH));
                if k < until {
                    line += &format!(" {} ", compared(k, n, WIDTH));
                }
                if let Action::Insert(..) = action {
                    let (search, _) = bisection(a, state.pos, k, *a.get(k)?)?;
                    line += &(look_up(a, k)? + &search);
                }
                line
            }
            (_, Action::Run(..)) => format!("{} {}", collapse(state), run(a, state.pos)?),
            _ => collapse(state),
        })
    }

    /// The cells of an insertion, or those of a run, ten at a time.
    const READS_MAX: usize = 30;

    const UNTAUGHT: [u32; 3] = [1, 1, 1];

    /// `012` is a cell; `r012` are cell 12 and those behind it up to the end of its ten; `02` are the cell before the ten of
    /// cell 20 and the cells of this ten, each with its key.
    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        let a = &state.a;
        match (address.strip_prefix('r'), number(address, WIDTH - 1)) {
            (Some(first), _) => number(first, WIDTH).and_then(|first| keyed(a, first, first / TEN)),
            (_, Some(ten)) => keyed(a, (ten * TEN).checked_sub(1)?, ten),
            _ => cells::read(a, address),
        }
    }
}

/// A value as a letter for the hundreds and two digits, those of its distance from the least of the benchmark, which
/// is -1000.
fn lettered(value: i64) -> String {
    let above = value.saturating_add(1000);
    let hundreds = usize::try_from(above.div_euclid(100)).ok();
    let letter = hundreds.and_then(|hundreds| ('A'..='Z').nth(hundreds)).unwrap_or('~');
    format!("{letter}{:02}", above.rem_euclid(100))
}

/// The cells from this place on to the end of a ten, each behind its key; `-` if there are none.
fn keyed(a: &[i64], first: usize, ten: usize) -> Option<String> {
    let cells = a.get(first..a.len().min((ten + 1) * TEN))?;
    let cell = |(value, place): (&i64, usize)| format!("{}{}", place % TEN, lettered(*value));
    let keyed: String = cells.iter().zip(first..).map(cell).collect();
    Some(if keyed.is_empty() { "-".to_owned() } else { keyed })
}

/// The keys of the cells up to the first that does not continue the run. `<` or `>` is the relation to the cell before: of the
/// second cell, of the whole run again at the beginning of each ten, and of the cell that ends it; `e` is the end of the array.
fn run(a: &[i64], pos: usize) -> Option<String> {
    let mut line = looked_up(&format!("r{pos:03}"), &keyed(a, pos, pos / TEN)?);
    line += &(pos % TEN).to_string();
    let mut of_run = None;
    for place in pos + 1.. {
        let key = place % TEN;
        if key == 0 {
            let ten = place / TEN;
            line += &format!(" {}", looked_up(&format!("{ten:02}"), &keyed(a, place - 1, ten)?));
            line.extend(of_run);
        }
        let mark = a.get(place).map_or('e', |value| if *value < a[place - 1] { '>' } else { '<' });
        if of_run.is_none() {
            line.push(mark);
        } else if of_run != Some(mark) {
            return Some(format!("{line}{mark}{key}"));
        }
        of_run = Some(mark);
        line += &key.to_string();
        if mark == 'e' {
            break;
        }
    }
    Some(line)
}

/// The lengths on top of the stack compared as the collapse rule does, up to the first that is broken.
fn collapse(state: &State) -> String {
    let mut lengths = state.stack.iter().rev().map(|[_, length]| *length);
    let [z, y, x, w] = std::array::from_fn(|_| lengths.next());
    let (Some(z), Some(y)) = (z, y) else { return "one".to_owned() };
    let mut line = format!("zy {}", compared(z, y, WIDTH));
    let mut is_due = y <= z;
    if let Some(x) = x.filter(|_| !is_due) {
        line += &format!(" xyz {} {}", sum(y, z, WIDTH), compared(x, y + z, WIDTH));
        is_due = x <= y + z;
        if let Some(w) = w.filter(|_| !is_due) {
            line += &format!(" wxy {} {}", sum(x, y, WIDTH), compared(w, x + y, WIDTH));
            is_due = w <= x + y;
        }
    }
    if !is_due {
        line += &format!(" end {}", compared(state.pos, state.a.len(), WIDTH));
        if state.pos != state.a.len() {
            return line;
        }
    }
    if let Some(x) = x {
        line += &format!(" xz {}", compared(x, z, WIDTH));
    }
    line
}

fn in_merge(a: &[i64], merge: &Merge, action: Action) -> Option<String> {
    let Merge { mid, hi, i, j, .. } = *merge;
    Some(match action {
        Action::Rest => "end".to_owned(),
        Action::GallopLeft(_) => {
            let (search, end) = bisection(a, i, mid, *a.get(j)?)?;
            format!("gl {} {search} {}", value_at(a, j), taken(end, i))
        }
        Action::GallopRight(_) => {
            let (search, end) = bisection_not_less(a, j, hi, *a.get(i)?)?;
            format!("gr {} {search} {}", value_at(a, i), taken(end, j))
        }
        _ => comparison(*a.get(i)?, *a.get(j)?),
    })
}

/// The cells from here to the end of a gallop.
fn taken(end: usize, from: usize) -> String {
    format!("{} {:03}", difference(end, from, WIDTH), end.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_up_to_its_end() {
        assert_eq!([lettered(-1000), lettered(-1), lettered(1000)], ["A00", "J99", "U00"]);
        let mut a = vec![-1000, -950, -950, -1000];
        assert_eq!(run(&a, 0).as_deref(), Some("r000?=0A001A502A503A00 0<12>3"));
        assert_eq!(run(&a, 2).as_deref(), Some("r002?=2A503A00 2>3e4"));
        assert_eq!(run(&a, 3).as_deref(), Some("r003?=3A00 3e4"));
        a.extend([-1000, 0, 1, 2, 3, 4]);
        assert_eq!(run(&a, 8).as_deref(), Some("r008?=8K039K04 8<9 01?=9K04 <e0"));
        a.extend([3, 3]);
        assert_eq!(run(&a, 9).as_deref(), Some("r009?=9K04 9 01?=9K040K031K03 >0<1"));
        assert_eq!(keyed(&a, 12, 1).as_deref(), Some("-"));
        assert_eq!(keyed(&a, 13, 1), None);
    }
}
