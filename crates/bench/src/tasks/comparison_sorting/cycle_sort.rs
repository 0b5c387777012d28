//! Cycle Sort: take an element, count the smaller ones to find its place, put it there and continue
//! with the one displaced.
//!
//! A step is one action line: `take c` opens a cycle, `cmp i`, `put p`, `done`.

use std::sync::Arc;

use crate::tasks::pages::cycle_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `cycle-sort`.
pub struct CycleSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array; the cell at `start` keeps its old value until something is put there.
    pub a: Vec<i64>,
    /// First cell of the current cycle, from 0; none before the first `take`.
    pub start: Option<usize>,
    /// The element in hand; none before the first `take`.
    pub item: Option<i64>,
    /// Number of `put` since the last `take`.
    pub puts: u64,
    writes: u64,
    cycles: u64,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// The input in order, for the constraints alone.
    #[serde(skip)]
    sorted: Arc<[i64]>,
}

word_actions!(Action {
    /// `take c`: opens a cycle at cell c and takes its element in hand.
    Take(c) = "take",
    /// `cmp i`: compares `a[i]` with the element in hand.
    Cmp(i) = "cmp",
    /// `put p`: exchanges the element in hand and `a[p]`.
    Put(p) = "put",
    /// Ends the trace.
    Done = "done",
});

const NOTHING_IN_HAND: Illegal = Illegal("no element has been taken");

impl State {
    fn after_cycle(&self, start: usize) -> Action {
        if start + 2 < self.a.len() { Action::Take(start + 1) } else { Action::Done }
    }

    /// The next action when all cells after `start` have been compared with the item in hand.
    fn after_scan(&self) -> Option<Action> {
        let (start, item) = (self.start?, self.item?);
        let place = start + self.a[start + 1..].iter().filter(|x| **x < item).count();

        // The element is in its place: nothing is put.
        if self.puts == 0 && place == start {
            return Some(self.after_cycle(start));
        }
        // Equal elements that are in place already are passed over.
        let taken = self.a[place..].iter().take_while(|x| **x == item).count();
        (place + taken < self.a.len()).then_some(Action::Put(place + taken))
    }

    /// Returns whether the cycle has closed, or its element was found to be in its place.
    fn cycle_is_over(&self) -> bool {
        match self.last.0 {
            Some(Action::Put(p)) => self.start == Some(p),
            Some(Action::Cmp(i)) => self.puts == 0 && i + 1 == self.a.len(),
            _ => false,
        }
    }

    fn may_take(&self, c: usize) -> bool {
        let next = match self.last.0 {
            None => c == 0,
            Some(_) => self.cycle_is_over() && self.start.is_some_and(|start| c == start + 1),
        };
        next && c + 1 < self.a.len()
    }

    fn may_compare(&self, i: usize) -> bool {
        let seen = match self.last.0 {
            Some(Action::Cmp(seen)) => Some(seen),
            // The cycle has closed.
            Some(Action::Put(p)) if self.start == Some(p) => None,
            Some(Action::Take(_) | Action::Put(_)) => self.start,
            _ => None,
        };
        seen.is_some_and(|seen| i == seen + 1)
    }

    /// Returns whether p is the first cell that the item may end in and that does not hold its
    /// value yet. The cell of `start` is free until the cycle closes, though it keeps its old
    /// value.
    fn is_first_free(&self, p: usize) -> bool {
        let (Some(start), Some(item)) = (self.start, self.item) else { return false };
        let belongs = |place: usize| self.sorted[place] == item;
        self.a[p] != item
            && (start..p).all(|place| !belongs(place) || (place > start && self.a[place] == item))
    }

    fn cells_written(&self, input: &[i64]) -> u64 {
        self.a.iter().zip(input).filter(|(now, first)| now != first).count() as u64
    }

    fn is_permutation(&self) -> bool {
        let is_sorted_input = |mut values: Vec<i64>| {
            values.sort_unstable();
            *values == *self.sorted
        };
        // While a cycle is open the item is not in the array: the cell of `start` still holds its
        // old value instead.
        let with_item = || {
            let (start, item) = (self.start?, self.item?);
            let mut values = self.a.clone();
            values[start] = item;
            Some(values)
        };
        with_item().is_some_and(is_sorted_input) || is_sorted_input(self.a.clone())
    }
}

fn sorted(a: &[i64]) -> Arc<[i64]> {
    let mut sorted = a.to_vec();
    sorted.sort_unstable();
    sorted.into()
}

impl Task for CycleSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            start: None,
            item: None,
            puts: 0,
            writes: 0,
            cycles: 0,
            comparisons: 0,
            last: Last(None),
            sorted: sorted(&input.a),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        limits::below("start", state.start, input.a.len())?;

        let held = state.start.is_some() == state.item.is_some();
        InvalidInput::unless(held, "item", "is there if and only if `start` is")?;
        let begun = state.start.is_some() || matches!(state.last.0, None | Some(Action::Done));
        InvalidInput::unless(begun, "start", "must be there after the first line")?;

        if let Some(Action::Take(place) | Action::Cmp(place) | Action::Put(place)) = state.last.0 {
            limits::below("last", [place], input.a.len())?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn complete(input: &Input, state: &mut State) {
        state.sorted = sorted(&input.a);
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if let Action::Take(place) | Action::Cmp(place) | Action::Put(place) = *action {
            require_places(&state.a, place, place)?;
        }

        match *action {
            Action::Take(c) => {
                state.start = Some(c);
                state.item = Some(state.a[c]);
                state.puts = 0;
            }
            Action::Cmp(_) => {
                state.item.ok_or(NOTHING_IN_HAND)?;
                state.comparisons += 1;
            }
            Action::Put(p) => {
                let item = state.item.as_mut().ok_or(NOTHING_IN_HAND)?;
                std::mem::swap(item, &mut state.a[p]);
                state.writes += 1;
                state.puts += 1;
                state.cycles += u64::from(state.start == Some(p));
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        match state.last.0 {
            None => Some(Action::Take(0)),
            Some(Action::Take(c)) => (c + 1 < n).then_some(Action::Cmp(c + 1)),
            Some(Action::Cmp(i)) if i <= state.start? => None,
            Some(Action::Cmp(i)) if i + 1 < n => Some(Action::Cmp(i + 1)),
            Some(Action::Cmp(_)) => state.after_scan(),
            Some(Action::Put(p)) => {
                // No cycle starts at the last cell.
                let start = state.start.filter(|start| start + 1 < n)?;
                Some(if p == start { state.after_cycle(start) } else { Action::Cmp(start + 1) })
            }
            Some(Action::Done) => None,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::PERMUTATION, after.is_permutation());
        found.require(
            page::PREFIX,
            after.start.is_none_or(|start| after.a[..start] == after.sorted[..start]),
        );

        // A cycle writes at least two cells.
        let cycles = after.cycles.checked_mul(2).is_some_and(|writes| writes <= after.writes);
        found.require(page::COUNTS, after.puts <= after.writes && cycles);
        found.require(page::WRITES, after.writes == after.cells_written(&input.a));

        match *action {
            Action::Take(c) => found.require(page::TAKE, before.may_take(c)),
            Action::Cmp(i) => found.require(page::SCAN, before.may_compare(i)),
            Action::Put(p) => {
                found.require(page::FINAL_PLACE, after.a[p] == after.sorted[p]);
                found.require(
                    page::WHOLE_SCAN,
                    before.last.0 == Some(Action::Cmp(after.a.len() - 1)),
                );
                found.require(page::FIRST_FREE, before.is_first_free(p));
            }
            Action::Done => {
                let last = before.start.is_some_and(|start| start + 2 == after.a.len());
                found.require(page::ALL_TAKEN, last && before.cycle_is_over());
                found.require(page::SORTED, after.a.is_sorted());
            }
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // n-1 takes with one scan each: n-1 + ... + 1 comparisons. At most n writes, since no cell
        // is written twice; each but the one that closes a cycle is followed by a scan.
        let n = input.len();
        (n - 1) + input.pairs() + n + (n - 1) * (n - 1) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "writes": state.writes,
            "cycles": state.cycles,
            "comparisons": state.comparisons,
        })
    }
}
