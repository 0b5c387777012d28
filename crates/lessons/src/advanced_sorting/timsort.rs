//! Timsort: runs are read ten cells at a time, insertions and gallops search by halves, merges
//! compare two values.
// All values are written above the least of the benchmark, a letter for the hundreds and two
// digits, so that values of either sign compare in the same way, by one pair of characters at a
// time. The cells of a run are read with the last digits of their places as keys.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::merge::Merge;
use prime_bench::tasks::advanced_sorting::timsort::{Action, Order, State, Timsort};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::cells::{bisected, number};
use crate::numbers::{compared, counter, difference, pairwise, sign, sum};
use crate::reads::looked_up;

pub struct TimsortLesson;

const WIDTH: usize = 3;

/// Cells of one read while a run is searched: their places differ in the last digit only.
const TEN: usize = 10;

impl Lesson for TimsortLesson {
    type Task = Timsort;

    fn view(input: &Input, state: &State) -> String {
        let n = input.a.len();

        // In a merge only its heads and the streaks of both halves matter.
        if let Some(merge) = &state.merge {
            let Merge { mid, hi, i, j, lw, rw, .. } = merge;
            let [left, right] = [(*i, *mid), (*j, *hi)].map(|(at, end)| {
                format!(
                    "{} {}",
                    counter(at, end, WIDTH),
                    state
                        .a
                        .get(at)
                        .filter(|_| at < end)
                        .map_or_else(|| "-".to_owned(), |value| lettered(*value))
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
                // The collapse rule looks at no more than the top four runs.
                let top = "zyxw".chars().zip(state.stack.iter().rev());
                let top: Vec<_> =
                    top.map(|(name, [_, length])| format!("{name}{length:03} ")).collect();
                format!("stack {count} {}next {pos:03} of {n:03}", top.concat())
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
                    line += &format!(" end {}", compared(k, n, WIDTH));
                }

                if let Action::Insert(..) = action {
                    let key = *a.get(k)?;
                    let (search, place) = bisection(a, state.pos, k, key, |value| value > key)?;
                    line += &format!(" {}{search} {place:0WIDTH$}", look_up(a, k)?);
                }
                line
            }
            (_, Action::Run(..)) => format!("{} {}", collapse(state), run(a, state.pos)?),
            _ => collapse(state),
        })
    }

    /// The cells of an insertion, or those of a run, ten at a time.
    const READS_MAX: usize = 16;

    const UNTAUGHT: [u32; 3] = [1, 1, 1];

    /// `012` is a cell; `r012` are cell 12 and those after it up to the end of its ten; `02` are
    /// the cell before the ten of cell 20 and the cells of this ten, each with its key.
    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        let a = &state.a;
        match (address.strip_prefix('r'), number(address, WIDTH - 1)) {
            (Some(first), _) => number(first, WIDTH).and_then(|first| keyed(a, first, first / TEN)),
            (_, Some(ten)) => keyed(a, (ten * TEN).checked_sub(1)?, ten),
            _ => {
                number(address, WIDTH).and_then(|place| a.get(place)).map(|value| lettered(*value))
            }
        }
    }
}

/// A value as a letter for the hundreds and two digits, those of its distance from the least of the
/// benchmark, which is -1000.
fn lettered(value: i64) -> String {
    let above = value.saturating_add(1000);
    let hundreds = usize::try_from(above.div_euclid(100)).ok();
    let letter = hundreds.and_then(|hundreds| ('A'..='Z').nth(hundreds)).unwrap_or('~');
    format!("{letter}{:02}", above.rem_euclid(100))
}

/// The cells from this place on to the end of a ten, each after its key; `-` if there are none.
fn keyed(a: &[i64], first: usize, ten: usize) -> Option<String> {
    let cells = a.get(first..a.len().min((ten + 1) * TEN))?;
    let cell = |(value, place): (&i64, usize)| format!("{}{}", place % TEN, lettered(*value));
    let keyed: String = cells.iter().zip(first..).map(cell).collect();
    Some(if keyed.is_empty() { "-".to_owned() } else { keyed })
}

/// The keys of the cells up to the first that does not continue the run, each with its relation to
/// the cell before. The second cell's is followed by the order, which stands again at the beginning
/// of each ten; the cell that ends the run, or `e` for the end of the array, by its whole place.
fn run(a: &[i64], pos: usize) -> Option<String> {
    let mut line = looked_up(&format!("r{pos:03}"), &keyed(a, pos, pos / TEN)?);
    line += &(pos % TEN).to_string();
    let mut of_run = None;

    for place in pos + 1.. {
        let key = place % TEN;
        if key == 0 {
            let ten = place / TEN;
            line += &format!(" {}", looked_up(&format!("{ten:02}"), &keyed(a, place - 1, ten)?));
            line.extend(of_run.map(letter));
        }

        let cell = a.get(place).copied();
        let order = if cell.is_some_and(|value| value < a[place - 1]) {
            Order::Descending
        } else {
            Order::Ascending
        };

        line += &key.to_string();
        line += &cell.map_or_else(|| "e".to_owned(), |value| relation(value, a[place - 1]));
        if of_run.is_none() {
            line.push(letter(order));
        }

        if cell.is_none() || of_run.is_some_and(|of_run| of_run != order) {
            return Some(format!("{line}.{place:03}"));
        }

        of_run = Some(order);
    }
    None
}

fn letter(order: Order) -> char {
    if order == Order::Ascending { 'a' } else { 'd' }
}

/// The relation of a value to the one before, as lettered: by the letters alone where they differ;
/// otherwise after `h` by the tens or, where those are equal too, after `t` by the units.
fn relation(value: i64, before: i64) -> String {
    let (value, before) = (lettered(value), lettered(before));
    let mut pairs = value.bytes().zip(before.bytes());
    let place = pairs.position(|(x, y)| x != y).unwrap_or(2);
    format!("{}{}", ["", "h", "t"][place.min(2)], sign(value.cmp(&before), '<', '=', '>'))
}

/// The lengths on top of the stack compared as the collapse rule does, up to the first that is not
/// greater; then the place in the array, and, where two runs are merged, which.
fn collapse(state: &State) -> String {
    let mut lengths = state.stack.iter().rev().map(|[_, length]| *length);
    let [z, y, x, w] = std::array::from_fn(|_| lengths.next());
    let end = compared(state.pos, state.a.len(), WIDTH);
    // Without a second run nothing can be merged.
    let (Some(z), Some(y)) = (z, y) else { return format!("one end {end}") };
    let added = |x, y| format!("{} {:0WIDTH$}", sum(x, y, WIDTH), x + y);

    let mut line = format!("yz {}", compared(y, z, WIDTH));
    let mut is_due = y <= z;

    if let Some(x) = x.filter(|_| !is_due) {
        line += &format!(" xyz {} {}", added(y, z), compared(x, y + z, WIDTH));
        is_due = x <= y + z;
        if let Some(w) = w.filter(|_| !is_due) {
            line += &format!(" wxy {} {}", added(x, y), compared(w, x + y, WIDTH));
            is_due = w <= x + y;
        }
    }

    // A stack that keeps the rule is merged only at the end of the array.
    if !is_due {
        line += &format!(" end {end}");
        if state.pos != state.a.len() {
            return line;
        }
    }

    let count = state.stack.len();
    // The middle run is merged with the shorter of its neighbours.
    let below = if let Some(x) = x {
        line += &format!(" xz {}", compared(x, z, WIDTH));
        if x < z { 3 } else { 2 }
    } else {
        2
    };

    line + &format!(" {count}-{below}={}", count - below)
}

fn in_merge(a: &[i64], merge: &Merge, action: Action) -> Option<String> {
    let Merge { mid, hi, i, j, .. } = *merge;
    if action == Action::Rest {
        return Some("end".to_owned());
    }

    let (left, right) = (*a.get(i)?, *a.get(j)?);

    Some(match action {
        Action::GallopLeft(_) => {
            let (search, end) = bisection(a, i, mid, right, |value| value > right)?;
            format!("gl {} {search} {}", lettered(right), taken(end, i))
        }
        Action::GallopRight(_) => {
            let (search, end) = bisection(a, j, hi, left, |value| value >= left)?;
            format!("gr {} {search} {}", lettered(left), taken(end, j))
        }
        _ => pairwise(&lettered(left), &lettered(right)),
    })
}

fn look_up(a: &[i64], place: usize) -> Option<String> {
    Some(looked_up(&format!("{place:0WIDTH$}"), &lettered(*a.get(place)?)))
}

/// A binary search for the first of the ascending cells `lo..hi` that is past the key, and where it
/// ends. Each middle stands with its value, its characters beside the key's up to the first
/// difference, and `g` if the cell is past the key, otherwise `l`.
fn bisection(
    a: &[i64],
    lo: usize,
    hi: usize,
    key: i64,
    is_past: impl Fn(i64) -> bool,
) -> Option<(String, usize)> {
    bisected(lo, hi, |place| {
        let value = *a.get(place)?;
        let is_past = is_past(value);
        let order = pairwise(&lettered(value), &lettered(key));
        Some((look_up(a, place)? + &order + if is_past { "g " } else { "l " }, is_past))
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
    fn a_search_ends_behind_or_before_what_is_equal() {
        let a = [-5, 1, 1, 7, 30];
        let ends = "040000:4.0.0. 002?=K01 KK=00=11=";

        let (behind, place) = bisection(&a, 0, 4, 1, |value| value > 1).expect("cells");
        assert_eq!(behind, format!("{ends}l 340000:7.0.0. 003?=K07 KK=00=71>g 330000="));
        assert_eq!(place, 3);

        let (before, place) = bisection(&a, 0, 4, 1, |value| value >= 1).expect("cells");
        assert!(before.starts_with(&format!("{ends}g ")), "{before}");
        assert_eq!(place, 1);

        assert_eq!(bisection(&a, 4, 4, 1, |_| true), Some(("440000=".to_owned(), 4)));
        assert_eq!(bisection(&a, 0, 900, 1, |_| true), None, "there are no such cells");
    }

    #[test]
    fn a_run_is_read_up_to_its_end() {
        assert_eq!([lettered(-1000), lettered(-1), lettered(1000)], ["A00", "J99", "U00"]);
        let mut a = vec![-1000, -950, -950, -1000];
        assert_eq!(run(&a, 0).as_deref(), Some("r000?=0A001A502A503A00 01h>a2t=3h<.003"));
        assert_eq!(run(&a, 2).as_deref(), Some("r002?=2A503A00 23h<d4e.004"));
        assert_eq!(run(&a, 3).as_deref(), Some("r003?=3A00 34ea.004"));

        a.extend([-1000, 0, 1, 2, 3, 4]);
        assert_eq!(run(&a, 8).as_deref(), Some("r008?=8K039K04 89t>a 01?=9K04 a0e.010"));
        a.extend([3, 3]);

        assert_eq!(run(&a, 9).as_deref(), Some("r009?=9K04 9 01?=9K040K031K03 0t<d1t=.011"));
        assert_eq!(keyed(&a, 12, 1).as_deref(), Some("-"));
        assert_eq!(keyed(&a, 13, 1), None);
    }
}
