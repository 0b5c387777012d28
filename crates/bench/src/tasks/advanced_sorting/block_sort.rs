//! Block Sort: insertion sort in blocks of 16, then stable merges in place by rotations.
//!
//! A step is one action line: an insertion, a merge begun, a rotation, `done`.

use super::moves;
use crate::tasks::pages::block_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `block-sort`.
pub struct BlockSort;

const BLOCK: usize = 16;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// Where the last `merge` began; none before it.
    pub base: Option<usize>,
    /// Start of what is left of its left run; none before the first `merge`.
    pub lo: Option<usize>,
    /// End of the left run and start of the right one; none before the first `merge`.
    pub mid: Option<usize>,
    /// End of the right run, exclusive; none before the first `merge`.
    pub hi: Option<usize>,
    merges: u64,
    rotations: u64,
    moved: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `insert k p`: moves `a[k]` to cell p, at or before k, and those between one up.
    Insert(k, p) = "insert",
    /// `merge lo mid hi`: begins to merge `a[lo..mid)` and `a[mid..hi)`.
    Merge(lo, mid, hi) = "merge",
    /// `rotate lo mid e`: exchanges the neighbouring blocks `a[lo..mid)` and `a[mid..e)`.
    Rotate(lo, mid, e) = "rotate",
    /// Ends the trace.
    Done = "done",
});

/// The first insertion at or after place `k`, or what follows when all blocks are sorted.
fn insertion(a: &[i64], k: usize) -> Action {
    // The first cell of a block is sorted by itself.
    let k = if k.is_multiple_of(BLOCK) { k + 1 } else { k };
    if k < a.len() {
        Action::Insert(k, moves::insertion_place(a, k - k % BLOCK, k))
    } else {
        merge(a.len(), 0, BLOCK)
    }
}

/// The first merge of two neighbours of `width` cells at or after place `lo`, or what follows.
fn merge(n: usize, lo: usize, width: usize) -> Action {
    if lo + width < n {
        Action::Merge(lo, lo + width, n.min(lo + 2 * width))
    } else if 2 * width < n && lo > 0 {
        merge(n, 0, 2 * width)
    } else {
        Action::Done
    }
}

/// The width of the merge of these bounds.
fn width(n: usize, base: usize, hi: usize) -> Option<usize> {
    let mut width = BLOCK;
    while 2 * width < hi.checked_sub(base)? {
        width *= 2;
    }
    (base.is_multiple_of(2 * width) && base + width < n && hi == n.min(base + 2 * width))
        .then_some(width)
}

/// Merges of two neighbours of `width` cells.
fn merges_of(n: usize, width: usize) -> usize {
    n.saturating_sub(width).div_ceil(2 * width)
}

/// Merges of neighbours of less than `width` cells.
fn merges_below(n: usize, width: usize) -> usize {
    let widths = std::iter::successors(Some(BLOCK), |width| Some(2 * width));
    widths
        .take_while(|narrower| *narrower < width.min(n))
        .map(|narrower| merges_of(n, narrower))
        .sum()
}

/// The number, counted from 1, of the merge of these bounds, if a merge has them.
fn merge_number(n: usize, lo: usize, mid: usize, hi: usize) -> Option<u64> {
    let width = mid - lo;
    let is_width = width.is_multiple_of(BLOCK) && (width / BLOCK).is_power_of_two();
    let exists = is_width && lo.is_multiple_of(2 * width) && mid < n && hi == n.min(lo + 2 * width);
    exists.then(|| (merges_below(n, width) + lo / (2 * width) + 1) as u64)
}

/// Returns whether no place from `k` on takes part in an insertion.
fn are_blocks_inserted(n: usize, k: usize) -> bool {
    (k..n).len() <= usize::from(k.is_multiple_of(BLOCK))
}

impl State {
    /// Returns whether the phase before a merge or `done` is complete: the insertions or the last
    /// merge.
    fn is_merged(&self) -> bool {
        match (self.base, self.hi, self.last.0) {
            (Some(base), Some(hi), _) => moves::part(&self.a, base..hi).is_sorted(),
            (.., Some(Action::Insert(k, _))) => {
                are_blocks_inserted(self.a.len(), k + 1)
                    && self.a.chunks(BLOCK).all(<[i64]>::is_sorted)
            }
            _ => false,
        }
    }

    /// Returns whether the two blocks lie in the halves being merged and are exactly the elements
    /// that must change sides.
    fn is_rotation_due(&self, lo: usize, mid: usize, end: usize) -> bool {
        let (Some(start), Some(middle), Some(hi)) = (self.lo, self.mid, self.hi) else {
            return false;
        };

        let within = start <= lo && lo < mid && mid == middle && mid < end && end <= hi;
        let a = &self.a;
        within
            && end <= a.len()
            && a[lo] > a[mid]
            && (lo == start || a[lo - 1] <= a[mid])
            && a[end - 1] < a[lo]
            && (end == hi || a.get(end) >= a.get(lo))
    }

    /// The next rotation of the merge in progress, if there is one.
    fn rotation(&self, lo: usize, mid: usize, hi: usize) -> Option<Action> {
        let next = *moves::part(&self.a, mid..hi).first()?;
        // Greater elements move past `next`, lesser ones past `least`: equal ones keep their order.
        let lo = moves::first(&self.a, lo, mid, |value| value > next);
        let least = *moves::part(&self.a, lo..mid).first()?;
        Some(Action::Rotate(lo, mid, moves::first(&self.a, mid, hi, |value| value >= least)))
    }
}

impl Task for BlockSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            base: None,
            lo: None,
            mid: None,
            hi: None,
            merges: 0,
            rotations: 0,
            moved: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let places = [state.base, state.lo, state.mid, state.hi];
        limits::below("base", places.into_iter().flatten(), input.a.len() + 1)?;
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = state.a.len();
        match *action {
            Action::Insert(k, p) => moves::insert(&mut state.a, k, p)?,
            Action::Merge(lo, mid, hi) | Action::Rotate(lo, mid, hi)
                if lo > mid || mid > hi || hi > n =>
            {
                return Err(Illegal("the three places do not ascend within the array"));
            }
            Action::Merge(lo, mid, hi) => {
                (state.base, state.lo, state.mid, state.hi) =
                    (Some(lo), Some(lo), Some(mid), Some(hi));
                state.merges += 1;
            }
            Action::Rotate(lo, mid, end) => {
                state.a[lo..end].rotate_left(mid - lo);
                state.moved += (end - lo) as u64;
                state.rotations += 1;
                // The right block, now in front, is merged; the rest of the left half comes after
                // it.
                (state.lo, state.mid) = (Some(lo + (end - mid)), Some(end));
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        match state.last.0 {
            None => Some(insertion(&state.a, 0)),
            // Blocks are sorted before the first merge.
            Some(Action::Insert(k, _)) => state.base.is_none().then(|| insertion(&state.a, k + 1)),
            Some(Action::Merge(..) | Action::Rotate(..)) => {
                let (base, hi) = (state.base?, state.hi?);
                let width = width(n, base, hi)?;
                let next = || merge(n, base + 2 * width, width);
                Some(state.rotation(state.lo?, state.mid?, hi).unwrap_or_else(next))
            }
            Some(Action::Done) => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let a = &after.a;
        found.require(page::PERMUTATION, moves::keeps_values(&before.a, a));

        if let (Some(base), Some(lo), Some(mid), Some(hi)) =
            (after.base, after.lo, after.mid, after.hi)
        {
            found.require(page::BOUNDS, base <= lo && lo <= mid && mid <= hi && hi <= a.len());
            let (left, right) = (moves::part(a, lo..mid), moves::part(a, mid..hi));
            found.require(page::HALVES, left.is_sorted() && right.is_sorted());

            let merged = moves::part(a, base..lo);
            let bounded =
                merged.last().is_none_or(|x| moves::part(a, lo..hi).iter().all(|y| y >= x));
            found.require(page::MERGED, merged.is_sorted() && bounded);
        }

        found.require(page::COUNTS, after.moved >= 2 * after.rotations);

        match *action {
            Action::Insert(k, p) => {
                let passed = match before.last.0 {
                    None => Some(0),
                    Some(Action::Insert(last, _)) => Some(last + 1),
                    _ => None,
                };
                // The first cell of a block needs no insertion.
                let next = passed.map(|place| place + usize::from(place.is_multiple_of(BLOCK)));
                found.require(page::INSERT_ORDER, next == Some(k) && before.base.is_none());
                found.require(page::INSERTED, moves::is_stable_insertion(a, k - k % BLOCK, k, p));
            }
            Action::Merge(lo, mid, hi) => {
                found.require(
                    page::MERGE_ORDER,
                    merge_number(a.len(), lo, mid, hi) == Some(after.merges),
                );
                found.require(page::COMPLETE, before.is_merged());
            }
            Action::Rotate(lo, mid, end) => {
                found.require(page::ROTATION, before.is_rotation_due(lo, mid, end));
            }
            Action::Done => {
                found.require(page::COMPLETE, before.is_merged());
                found.require(
                    page::ALL_MERGES,
                    after.merges == merges_below(a.len(), a.len()) as u64,
                );
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // With b blocks, n - b cells are inserted and b - 1 merges are made. Each rotation of a
        // merge moves another element of the right half down, which is at most half of the cells;
        // there are as many levels as doublings of 16 below n.
        let n = input.a.len();
        let levels = n.div_ceil(BLOCK).next_power_of_two().ilog2() as usize;
        (n + levels * (n / 2)) as u64
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "merges": state.merges,
            "rotations": state.rotations,
            "moved": state.moved,
        })
    }
}
