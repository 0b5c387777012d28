//! Library Sort: insertion sort with gaps; binary search finds the place, and the gaps are renewed
//! at each doubling.
//!
//! A step is one action line: a rebalancing, a comparison of a search, an insertion, `done`.

use crate::tasks::pages::library_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `library-sort`.
pub struct LibrarySort;

/// Cells per element after a rebalancing.
const SPREAD: usize = 4;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The elements inserted so far, with none in a gap.
    pub cells: Vec<Option<i64>>,
    /// Number of elements inserted.
    pub count: usize,
    /// Lowest rank that the search still allows.
    pub lo: usize,
    /// Highest rank that the search still allows, at most `count`.
    pub hi: usize,
    rebalances: u64,
    shifts: u64,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// True if the values are in order. Only an insertion can change that.
    #[serde(skip)]
    ordered: bool,
}

word_actions!(Action {
    /// Spreads the elements over four times as many cells, three gaps after each.
    Rebalance = "rebalance",
    /// `cmp k c`: compares the input's element k with cell c.
    Cmp(k, c) = "cmp",
    /// `insert k c`: puts the input's element k into cell c; shifts to the nearest gap if need be.
    Insert(k, c) = "insert",
    /// Ends the trace.
    Done = "done",
});

const NOT_NEXT: Illegal = Illegal("this element is not the next one");

impl State {
    fn values(&self) -> impl Iterator<Item = i64> {
        self.cells.iter().filter_map(|cell| *cell)
    }

    /// Cell of the element of this rank.
    pub fn cell_of(&self, rank: usize) -> Option<usize> {
        self.cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.is_some())
            .nth(rank)
            .map(|(place, _)| place)
    }

    /// Elements before this cell.
    fn rank_of(&self, cell: usize) -> usize {
        self.cells[..cell].iter().flatten().count()
    }

    fn rebalance(&mut self) {
        let mut cells = vec![None; SPREAD * self.count];
        for (rank, value) in self.values().enumerate() {
            cells[SPREAD * rank] = Some(value);
        }
        self.cells = cells;
        self.rebalances += 1;
    }

    /// Inserts the value into the cell, shifting elements towards the nearest gap.
    fn insert(&mut self, value: i64, c: usize) -> Result<(), Illegal> {
        if self.cells[c].is_some() {
            // Elements shift right if any gap lies there, and left only otherwise.
            let after = self.cells[c..].iter().position(Option::is_none);
            if let Some(distance) = after {
                self.cells[c..=c + distance].rotate_right(1);
                self.shifts += distance as u64;
            } else {
                let gap = self.cells[..c]
                    .iter()
                    .rposition(Option::is_none)
                    .ok_or(Illegal("there is no gap left"))?;
                self.cells[gap..=c].rotate_left(1);
                self.shifts += (c - gap) as u64;
            }
        }

        self.cells[c] = Some(value);
        self.count += 1;
        (self.lo, self.hi) = (0, self.count);
        self.ordered = self.values().is_sorted();
        Ok(())
    }

    /// The step that the binary search for element `count`, or its end, prescribes.
    fn search_step(&self) -> Option<Action> {
        let k = self.count;
        if self.lo < self.hi {
            return self
                .cell_of(usize::midpoint(self.lo, self.hi))
                .map(|cell| Action::Cmp(k, cell));
        }

        // Cells counted from 1, so that 0 stands for "before the first".
        let p = match self.lo.checked_sub(1) {
            Some(rank) => self.cell_of(rank)? + 1,
            None => 0,
        };
        let q = self.cell_of(self.lo).unwrap_or(self.cells.len()) + 1;

        // Between the neighbours' cells if there is a gap; else into the right neighbour's cell,
        // shifting right; else into the left neighbour's, shifting left.
        let cell = if q - p > 1 {
            p + (q - p) / 2 - 1
        } else if self.cells[p..].contains(&None) {
            p
        } else if self.cells.contains(&None) {
            p.checked_sub(1)?
        } else {
            return None;
        };

        Some(Action::Insert(k, cell))
    }

    /// Returns whether the values are those of `before` in the same order, plus the one just
    /// inserted.
    fn keeps_values(&self, a: &[i64], before: &Self, action: Action) -> bool {
        let mut old = before.values().peekable();
        let mut inserted = match action {
            Action::Insert(k, _) => a.get(k),
            _ => None,
        };

        for value in self.values() {
            // Any of several equal values may be the new one.
            if old.next_if_eq(&value).is_none() && inserted.take() != Some(&value) {
                return false;
            }
        }

        old.next().is_none() && inserted.is_none()
    }

    /// Returns whether the cell's element halves those of rank lo..hi-1: as many before it as after
    /// it, or one more.
    fn is_halved_by(&self, cell: usize) -> bool {
        let rank = self.rank_of(cell);
        (self.lo..self.hi).contains(&rank)
            && matches!((rank - self.lo).checked_sub(self.hi - 1 - rank), Some(0 | 1))
    }

    /// Returns whether an insertion may use the cell: the middle of a gap, or a cell in use with no
    /// gap just before it or none anywhere after it.
    fn is_middle_of_gap(&self, cell: usize) -> bool {
        let (before, behind) = self.cells.split_at(cell);
        if self.cells[cell].is_some() {
            return before.last().is_none_or(Option::is_some) || behind.iter().all(Option::is_some);
        }
        let left = before.iter().rev().take_while(|cell| cell.is_none()).count();
        let right = behind[1..].iter().take_while(|cell| cell.is_none()).count();
        matches!(right.checked_sub(left), Some(0 | 1))
    }

    /// Returns whether there was a rebalancing for each power of two up to `count`.
    fn is_rebalanced(&self, count: usize) -> bool {
        self.rebalances == count.checked_ilog2().map_or(0, |log| u64::from(log) + 1)
    }

    fn search_holds(&self, a: &[i64]) -> bool {
        // Each bound comes from a comparison with the element that is searched for. If the values
        // are in order, all those outside the bounds are on the correct side.
        if self.ordered {
            return true;
        }

        let Some(element) = a.get(self.count) else { return true };
        let bounded = self.values().enumerate().all(|(rank, value)| {
            (rank >= self.lo || value <= *element) && (rank < self.hi || value > *element)
        });
        self.lo <= self.hi && self.hi <= self.count && bounded
    }
}

impl Task for LibrarySort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(_: &Input) -> State {
        State {
            cells: vec![None],
            count: 0,
            lo: 0,
            hi: 0,
            rebalances: 0,
            shifts: 0,
            comparisons: 0,
            last: Last(None),
            ordered: true,
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        let cells = state.cells.len();
        InvalidInput::unless(
            (1..=SPREAD * n).contains(&cells),
            "cells",
            format!("are {cells}; give 1 to {}", SPREAD * n),
        )?;

        let held = state.values().count() == state.count && state.count <= n;
        InvalidInput::unless(
            held,
            "count",
            format!("must be the number of cells in use, at most {n}"),
        )?;

        // A search is among the elements that are there. Bounds beyond them would pass for those of
        // a search that has ended.
        let places = |field, bound: usize| {
            InvalidInput::unless(bound <= state.count, field, "must be at most `count`")
        };
        places("lo", state.lo)?;
        places("hi", state.hi)
    }

    fn complete(_: &Input, state: &mut State) {
        state.ordered = state.values().is_sorted();
    }

    fn apply(input: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Rebalance => {
                if state.count == 0 {
                    return Err(Illegal("there is no element to spread"));
                }
                state.rebalance();
            }
            Action::Cmp(k, c) => {
                let element = input.a.get(k).filter(|_| k == state.count).ok_or(NOT_NEXT)?;
                let value = state
                    .cells
                    .get(c)
                    .copied()
                    .flatten()
                    .ok_or(Illegal("this cell is not in use"))?;

                let rank = state.rank_of(c);
                // Equal values stay before the new element, so that the sort is stable.
                if value <= *element {
                    state.lo = rank + 1;
                } else {
                    state.hi = rank;
                }

                state.comparisons += 1;
            }
            Action::Insert(k, c) => {
                let element = input.a.get(k).filter(|_| k == state.count).ok_or(NOT_NEXT)?;
                if c >= state.cells.len() {
                    return Err(Illegal("there is no such cell"));
                }

                state.insert(*element, c)?;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(input: &Input, state: &State) -> Option<Action> {
        let searching = state.count < input.a.len();
        match state.last.0 {
            None | Some(Action::Insert(..)) if !searching => Some(Action::Done),
            None | Some(Action::Insert(..)) if state.count.is_power_of_two() => {
                Some(Action::Rebalance)
            }
            Some(Action::Done) => None,
            _ => searching.then(|| state.search_step())?,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `doubled` says when there is a rebalancing, `halving`
        // which cell a comparison is with, and `searched` when the search is over. The new element
        // then has the rank that it found (`place-found`), so its cell lies between those of its
        // neighbours, or is one of them if there is none between: `gap-middle` leaves one.

        // Legal lines keep the order of the elements and add the next one, so only this step needs
        // checking.
        if matches!(action, Action::Insert(..) | Action::Rebalance) {
            found.require(page::MULTISET, after.keeps_values(&input.a, before, *action));
        }

        found.require(page::ORDERED, after.ordered);
        found.require(page::SEARCH, after.search_holds(&input.a));

        let rebalanced = *action != Action::Rebalance || SPREAD * after.count == after.cells.len();
        found.require(page::ROOM, after.count <= after.cells.len() && rebalanced);
        found.require(page::COUNTS, after.rebalances <= u64::from(input.a.len().ilog2()) + 1);

        match *action {
            Action::Rebalance => {
                found.require(
                    page::DOUBLED,
                    after.count.is_power_of_two() && after.is_rebalanced(after.count),
                );
            }
            Action::Cmp(k, c) => {
                found.require(page::DOUBLED, after.is_rebalanced(k));
                found.require(page::HALVING, before.is_halved_by(c));
            }
            Action::Insert(k, c) => {
                found.require(page::DOUBLED, after.is_rebalanced(k));
                found.require(page::SEARCHED, before.lo == before.hi);
                found.require(page::GAP_MIDDLE, before.is_middle_of_gap(c));
                found.require(page::PLACE_FOUND, after.rank_of(c) == before.lo);
            }
            // Element n - 1, the last, was inserted among n - 1 others.
            Action::Done => found.require(page::DOUBLED, after.is_rebalanced(input.a.len() - 1)),
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.count == input.a.len() && after.ordered);
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // An insertion each, a rebalancing at each power of two below n, and floor(log2 k) + 1
        // comparisons among k.
        let n = input.a.len();
        let comparisons: u64 = (1..n).map(|k| u64::from(k.ilog2()) + 1).sum();
        n as u64 + u64::from((n - 1).ilog2()) + 1 + comparisons + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        let (layout, sorted): (Vec<_>, Vec<_>) = state
            .cells
            .iter()
            .enumerate()
            .filter_map(|(place, cell)| Some((place, (*cell)?)))
            .unzip();

        json!({
            "sorted": sorted,
            "layout": layout,
            "rebalances": state.rebalances,
            "shifts": state.shifts,
            "comparisons": state.comparisons,
        })
    }
}
