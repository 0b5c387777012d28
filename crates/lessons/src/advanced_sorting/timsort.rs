//! Timsort: runs are read ten cells at a time, insertions and gallops search by halves, merges compare two values.
// The cells of a run are read as two letters each, digits of base 50, so that a long one fits.

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

/// Cells of one read, of those that a run is found in.
const CHUNK: usize = 10;

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
                format!("stack {count} top {} next {}", top.join(" "), counter(pos, n, WIDTH)).replace("top  ", "")
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
                let mut line = format!("{} {}", sum(state.pos, state.minrun, WIDTH), compared(k, until, WIDTH));
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

    /// The cells of a run, ten at a time.
    const READS_MAX: usize = 30;

    const UNTAUGHT: [u32; 3] = [1, 1, 1];

    /// `012` is a cell; `r012` are cell 12 and the nine behind it as letters, with `-` for each behind the last one.
    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        match address.strip_prefix('r') {
            Some(first) => chunk(&state.a, number(first, WIDTH)?),
            None => cells::read(&state.a, address),
        }
    }
}

/// A value as two digits of base 50, those of its distance from the least of the benchmark, which is -1000.
fn letters(value: i64) -> String {
    let letter = |place: i64| {
        let place = usize::try_from(place).ok();
        place.and_then(|place| ('A'..='Z').chain('a'..='z').nth(place)).unwrap_or('~')
    };
    let above = value.saturating_add(1000);
    [letter(above.div_euclid(50)), letter(above.rem_euclid(50))].iter().collect()
}

fn chunk(a: &[i64], first: usize) -> Option<String> {
    if first > a.len() {
        return None;
    }
    Some(
        (first..first + CHUNK)
            .map(|place| a.get(place).map_or_else(|| "-".to_owned(), |value| letters(*value)))
            .collect(),
    )
}

/// The letters of a value up to the first that is not that of the other.
fn up_to_letter(value: i64, other: i64) -> String {
    let (letters, other) = (letters(value), letters(other));
    if letters[..1] == other[..1] { letters } else { letters[..1].to_owned() }
}

/// Of each cell the letters up to the first that differs from the one before it, and their relation, up to the first that does
/// not continue the run, and its place.
fn run(a: &[i64], pos: usize) -> Option<String> {
    let mut line = String::new();
    let mut first = pos;
    let descends = pos + 1 < a.len() && a[pos + 1] < a[pos];
    loop {
        line += &looked_up(&format!("r{first:03}"), &chunk(a, first)?);
        for place in first..first + CHUNK {
            let ends = match a.get(place) {
                None => true,
                Some(_) if place == pos => false,
                Some(value) => (*value < a[place - 1]) != descends,
            };
            let mark = match a.get(place) {
                None => 'e',
                Some(_) if place == pos => '.',
                Some(value) if *value < a[place - 1] => '>',
                Some(_) => '<',
            };
            if let Some(value) = a.get(place) {
                line += &up_to_letter(*value, a[place.saturating_sub(1).max(pos)]);
            }
            line.push(mark);
            if ends {
                return Some(format!("{line} {}", place - first));
            }
        }
        line.push(' ');
        first += CHUNK;
    }
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
        line += " end";
        if state.pos != state.a.len() {
            return line + " no";
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
            format!("gl {search} {}", difference(end, i, WIDTH))
        }
        Action::GallopRight(_) => {
            let (search, end) = bisection_not_less(a, j, hi, *a.get(i)?)?;
            format!("gr {search} {}", difference(end, j, WIDTH))
        }
        _ => comparison(*a.get(i)?, *a.get(j)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_up_to_its_end() {
        assert_eq!([letters(-1000), letters(-951), letters(1000)], ["AA", "Ax", "oA"]);
        let a = [-1000, -950, -950, -1000];
        assert_eq!(run(&a, 0).as_deref(), Some("r000?=AABABAAA------ AA.B<BA<A> 3"));
        assert_eq!(run(&a, 2).as_deref(), Some("r002?=BAAA-------- BA.A>e 2"));
        assert_eq!(chunk(&a, 4).as_deref(), Some("----------"));
        assert_eq!(chunk(&a, 5), None);
    }
}
