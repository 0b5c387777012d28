//! Block Sort: insertions search their block by halves; rotations read on from both halves' first
//! cells.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::block_sort::{Action, BlockSort, State};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::cells::{self, bisection, bisection_not_less, look_up};
use crate::numbers::{
    compared, comparison_of_naturals, counter, difference, low_first, place, sum, up_to_difference,
};

pub struct BlockSortLesson;

const WIDTH: usize = 3;
const BLOCK: usize = 16;

/// Cells that a search reads one after the other, and the offsets of those that it reads next.
const NEAR: usize = 2;
const FAR: [usize; 3] = [5, 13, 23];

impl Lesson for BlockSortLesson {
    type Task = BlockSort;

    fn view(input: &Input, state: &State) -> String {
        let [base, lo, mid, hi] =
            [state.base, state.lo, state.mid, state.hi].map(|number| place(number, WIDTH));
        let n = input.a.len();

        match state.last.0 {
            None => format!("start of {n:03}"),
            Some(Action::Insert(k, _)) => {
                format!("insert {k:03} {} of {n:03} base {base}", in_blocks(k))
            }
            // Both actions are treated alike.
            Some(Action::Merge(..) | Action::Rotate(..)) => {
                format!("merge {lo} {mid} {hi} base {base} of {n:03}")
            }
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = BlockSort::reference(input, state)?;
        let n = input.a.len();

        Some(match (state.last.0, action) {
            (None, action) => insertion(state, 0, n, action)?,
            (Some(Action::Insert(k, _)), action) => insertion(state, k + 1, n, action)?,
            (_, Action::Rotate(..)) => rotation(state)?,
            _ => rotation(state)? + " " + &next_merge(n, state.base?, state.hi?),
        })
    }

    /// The first cell of the right half, then in both halves the next few and one for each halving.
    const READS_MAX: usize = 30;

    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        cells::read(&state.a, address)
    }
}

/// A place as the number of its block and the place in it.
fn in_blocks(k: usize) -> String {
    format!("{:02}:{:02}", k / BLOCK, k % BLOCK)
}

/// The next place, and the search of its block.
fn insertion(state: &State, k: usize, n: usize, action: Action) -> Option<String> {
    let line = format!("{} {}", in_blocks(k), counter(k, n, WIDTH));
    // Without a further insertion, the merges begin with the first two blocks.
    let Action::Insert(next, _) = action else {
        let next = if k < n { format!(" {}", counter(k + 1, n, WIDTH)) } else { String::new() };
        return Some(format!("{line}{next} merge {} ", counter(2 * BLOCK, n, WIDTH)));
    };

    // The first cell of a block is in place already, so the next one is inserted.
    let after = if next == k { String::new() } else { format!(" {}", counter(next, n, WIDTH)) };
    let base = next - next % BLOCK;
    let (search, _) = bisection(&state.a, base, next, *state.a.get(next)?)?;

    Some(format!("{line}{after} {base:03} {}{search}", look_up(&state.a, next)?))
}

/// Searches the ascending cells `from..to` for the first that is greater than `key` or, with
/// `or_equal`, not less. Mostly it is one of the next few: the first ones are numbered and read in
/// turn, each with its characters up to the first that differs from the key's. Then single cells
/// further on are read; the first of them that is past the key bounds what is left to be halved.
/// Returns the place, `to` if there is none.
fn search(
    a: &[i64],
    from: usize,
    to: usize,
    key: i64,
    or_equal: bool,
    line: &mut String,
) -> Option<usize> {
    let is_past = |cell: usize| a[cell] > key || or_equal && a[cell] == key;

    for number in 0..NEAR {
        let cell = from + number;
        *line += &format!("{number} ");
        if cell >= to {
            *line += &format!("{cell:03}.");
            return Some(cell);
        }
        *line += &(look_up(a, cell)? + &up_to_difference(a[cell], key));
        if is_past(cell) {
            return Some(cell);
        }
        line.push(' ');
    }

    let (mut lo, mut hi) = (from + NEAR, to);
    for number in FAR {
        let cell = from + number;
        *line += &format!("{number} {} {} ", low_first(cell, WIDTH), compared(cell, to, WIDTH));
        if cell >= to {
            break;
        }
        *line += &format!("{}{} ", look_up(a, cell)?, up_to_difference(a[cell], key));
        if is_past(cell) {
            hi = cell;
            break;
        }
        lo = cell + 1;
    }

    let halving = if or_equal { bisection_not_less } else { bisection };
    let (halved, place) = halving(a, lo, hi, key)?;
    *line += &halved;
    Some(place)
}

/// The first cell of the right half, the first of the left one that is greater, and the first of
/// the right one that is not less than this. What is searched for is read directly before each
/// search, since the cell may have been passed long before, or never read. A point says that a
/// place is the end of its half.
fn rotation(state: &State) -> Option<String> {
    let (lo, mid, hi) = (state.lo?, state.mid?, state.hi?);
    let a = &state.a;
    if mid >= hi {
        return Some(format!("{mid:03}."));
    }

    let mut line = look_up(a, mid)?;
    let first = search(a, lo, mid, a[mid], false, &mut line)?;
    if first < mid {
        line += &format!("; {}", look_up(a, first)?);
        let end = search(a, mid, hi, a[first], true, &mut line)?;
        if line.ends_with('=') {
            line += &format!(" {end:03}");
        }
    } else if !line.ends_with('.') {
        line += &format!("; {first:03}.");
    }

    Some(line)
}

/// The width of the completed merge, the first whose double reaches its number of cells; then the
/// bounds of the next merge, of the same width or of twice as much.
fn next_merge(n: usize, base: usize, hi: usize) -> String {
    let cells = hi.saturating_sub(base);
    let mut line = format!("{} {cells:03}", difference(hi, base, WIDTH));

    let mut width = BLOCK;
    loop {
        line += &format!(" {:03} {}", 2 * width, compared(cells, 2 * width, WIDTH));
        if 2 * width >= cells {
            break;
        }
        width *= 2;
    }

    line += &format!(" width {width:03} {}", sum(base, 2 * width, WIDTH));
    let lo = base + 2 * width;
    line += &format!(" {}", bounds(lo, width, n));
    if lo + width < n { line } else { format!("{line} twice {}", bounds(0, 2 * width, n)) }
}

/// The middle of a merge and, if the array continues there, its end: the smaller one of the sum and
/// n.
fn bounds(lo: usize, width: usize, n: usize) -> String {
    let mid = lo + width;
    let line =
        format!("{lo:03} {} {}", sum(lo, width, WIDTH), comparison_of_naturals(mid, n, WIDTH));

    if mid >= n {
        return line;
    }

    format!("{line} {} {}", sum(mid, width, WIDTH), comparison_of_naturals(mid + width, n, WIDTH))
}
