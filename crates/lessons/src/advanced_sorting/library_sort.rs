//! Library Sort: halves the ranks that are left and reads the cell of the middle one; then halves
//! the gap.
// After an insertion the line says if all elements are inserted, and gives the bits of their number
// up to the second that is set. A power of two has no second one.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::library_sort::{Action, LibrarySort, State};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::bits;
use crate::cells::{middle, number};
use crate::numbers::{compared, low_first};
use crate::reads::looked_up;

pub struct LibrarySortLesson;

/// Bits of a count of elements.
const COUNT_BITS: usize = 9;

impl Lesson for LibrarySortLesson {
    type Task = LibrarySort;

    fn view(input: &Input, state: &State) -> String {
        let State { count, lo, hi, .. } = state;
        let search = format!("{lo:03} {hi:03} {count:03} of {:04}", state.cells.len());
        let elements = || {
            format!("{} {count:03}/{:03}", bits::interleaved([*count], COUNT_BITS), input.a.len())
        };

        match state.last.0 {
            None => format!("start {} {search}", elements()),
            Some(Action::Insert(..)) => format!("insert {} {search}", elements()),
            // Both actions are treated alike.
            Some(Action::Rebalance | Action::Cmp(..)) => search,
            Some(Action::Done) => "done".to_owned(),
        }
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        let action = LibrarySort::reference(input, state)?;
        let State { lo, hi, count, .. } = *state;
        let counted = match state.last.0 {
            None | Some(Action::Insert(..)) => {
                format!("{} {} ", compared(count, input.a.len(), 3), up_to_second_one(count))
            }
            _ => String::new(),
        };

        Some(match action {
            Action::Cmp(..) => {
                counted + &middle(lo, hi, 3) + &look_up_rank(state, usize::midpoint(lo, hi))?
            }
            Action::Insert(..) => counted + &middle(lo, hi, 3) + " " + &gap(state)?,
            Action::Rebalance | Action::Done => counted.trim_end().to_owned(),
        })
    }

    /// Two ranks, and the cells from one on up to a free one.
    const READS_MAX: usize = 30;

    /// `r012` is the cell of the element of rank 12, `-` after the last one; `0012` is a cell: `.`
    /// if it is free, `x` if not, `-` after the last one.
    fn read(_: &Input, state: &State, address: &str) -> Option<String> {
        match address.strip_prefix('r') {
            Some(rank) => cell_of(state, number(rank, 3)?),
            None => occupation(state, number(address, 4)?),
        }
    }
}

/// The bits of a count, lowest first, up to the second that is set.
fn up_to_second_one(count: usize) -> String {
    let mut ones = 0;
    let bits = (0..COUNT_BITS).map(|place| count >> place & 1).take_while(|bit| {
        // The second set bit is included, so only the set bits before this one count.
        let is_before = ones < 2;
        ones += bit;
        is_before
    });
    bits.map(|bit| if bit == 1 { '1' } else { '0' }).collect()
}

fn cell_of(state: &State, rank: usize) -> Option<String> {
    // A search may end one past the last rank.
    if rank == state.count {
        return Some("-".to_owned());
    }
    state.cell_of(rank).map(|cell| format!("{cell:04}"))
}

fn look_up_rank(state: &State, rank: usize) -> Option<String> {
    Some(looked_up(&format!("r{rank:03}"), &cell_of(state, rank)?))
}

fn occupation(state: &State, cell: usize) -> Option<String> {
    let mark = match state.cells.get(cell) {
        Some(Some(_)) => "x",
        Some(None) => ".",
        None if cell == state.cells.len() => "-",
        None => return None,
    };
    Some(mark.to_owned())
}

/// The cells of the neighbours, and the middle between them. Where they have no gap between them,
/// the cells from the second one on, up to a free one.
fn gap(state: &State) -> Option<String> {
    let rank = state.lo;
    let end = state.cells.len();
    // Past the last element the gap extends to the last cell.
    let after = state.cell_of(rank).unwrap_or(end);
    let mut line = String::new();

    let before = match rank.checked_sub(1) {
        Some(rank) => {
            line += &format!("{} {}", low_first(rank, 3), look_up_rank(state, rank)?);
            Some(state.cell_of(rank)?)
        }
        None => None,
    };

    line += &look_up_rank(state, rank)?;
    match before {
        Some(before) if before + 1 < after => {
            line += &format!("{}{:04}", middle(before, after, 4), usize::midpoint(before, after));
        }
        // Before the first element the gap begins with the first cell.
        None if after > 0 => line += &format!("{} {:04}", low_first(after - 1, 4), (after - 1) / 2),
        _ => {
            for cell in after..=end {
                let mark = occupation(state, cell)?;
                line += &looked_up(&format!("{cell:04}"), &mark);
                if mark != "x" {
                    break;
                }
            }
        }
    }

    Some(line)
}
