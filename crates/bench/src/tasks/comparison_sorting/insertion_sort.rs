//! Insertion Sort: take the next element and shift the greater ones before it up until its place is
//! free.
//!
//! A step is one action line: `take k`, `cmp j`, `shift j`, `put p`, `done`.

use crate::tasks::pages::insertion_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `insertion-sort`.
pub struct InsertionSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array; the free cell keeps its old value while a key is in hand.
    pub a: Vec<i64>,
    /// The element in hand; none between `put` and `take`.
    pub key: Option<i64>,
    hole: Option<usize>,
    /// The place at which `a[1]`, `a[2]` and so on were put, in order of insertion.
    pub positions: Vec<usize>,
    comparisons: u64,
    shifts: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `take k`: takes `a[k]` in hand and frees its cell.
    Take(k) = "take",
    /// `cmp j`: compares `a[j]` with the element in hand.
    Cmp(j) = "cmp",
    /// `shift j`: moves `a[j]` one cell up; cell j becomes free.
    Shift(j) = "shift",
    /// `put p`: puts the element in hand into cell p.
    Put(p) = "put",
    /// Ends the trace.
    Done = "done",
});

const NOTHING_IN_HAND: Illegal = Illegal("no element has been taken");

impl State {
    /// The place whose element is inserted now, if it is in hand and its hole is within the places
    /// before.
    fn inserting(&self) -> Option<usize> {
        let place = self.positions.len() + 1;
        (self.key.is_some() && place < self.a.len() && self.hole? <= place).then_some(place)
    }

    /// Returns whether the array, with the element in hand put into its hole, is a permutation of
    /// the input. `false` for a hole without a key or a key without a hole.
    fn is_permutation(&self, input: &[i64]) -> bool {
        match (self.key, self.hole) {
            (None, None) => array::is_permutation(&self.a, input),
            (Some(key), Some(hole)) => {
                let mut whole = self.a.clone();
                whole[hole] = key;
                array::is_permutation(&whole, input)
            }
            _ => false,
        }
    }

    fn prefix_is_sorted(&self) -> bool {
        let end = self.positions.len() + 1 + usize::from(self.key.is_some());
        let prefix = &self.a[..end.min(self.a.len())];
        match self.hole.filter(|hole| self.key.is_some() && *hole < prefix.len()) {
            None => prefix.is_sorted(),
            Some(hole) => prefix[..hole].iter().chain(&prefix[hole + 1..]).is_sorted(),
        }
    }

    /// Returns whether the counts fit the positions, while no element is in hand: an insertion has
    /// a shift for each place that it moves down, and one comparison more unless it reaches the
    /// bottom.
    fn counts_follow_from_positions(&self) -> bool {
        let mut shifts = 0_u64;
        for (place, position) in (1..).zip(&self.positions) {
            let Some(distance) = usize::checked_sub(place, *position) else { return false };
            shifts += distance as u64;
        }

        let stopped = self.positions.iter().filter(|position| **position > 0).count() as u64;
        (self.shifts, self.comparisons) == (shifts, shifts + stopped)
    }

    fn hole_fits(&self) -> bool {
        match (self.key, self.hole) {
            (None, None) => true,
            (Some(key), Some(hole)) => {
                hole == self.positions.len() + 1
                    || self.a.get(hole + 1).is_some_and(|next| *next > key)
            }
            _ => false,
        }
    }
}

impl Task for InsertionSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let a = input.a.clone();
        State {
            a,
            key: None,
            hole: None,
            positions: Vec::new(),
            comparisons: 0,
            shifts: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::below("hole", state.hole, n)?;

        if let Some(Action::Take(k) | Action::Cmp(k) | Action::Shift(k) | Action::Put(k)) =
            state.last.0
        {
            limits::below("last", [k], n)?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Take(k) => {
                require_places(&state.a, k, k)?;
                state.key = Some(state.a[k]);
                state.hole = Some(k);
            }
            Action::Cmp(j) => {
                require_places(&state.a, j, j)?;
                state.key.ok_or(NOTHING_IN_HAND)?;
                state.comparisons += 1;
            }
            Action::Shift(j) => {
                require_places(&state.a, j, j.saturating_add(1))?;
                state.a[j + 1] = state.a[j];
                state.hole = Some(j);
                state.shifts += 1;
            }
            Action::Put(p) => {
                require_places(&state.a, p, p)?;
                state.a[p] = state.key.ok_or(NOTHING_IN_HAND)?;
                state.positions.push(p);
                state.key = None;
                state.hole = None;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            None => Some(Action::Take(1)),
            Some(Action::Take(k)) => (state.inserting()? == k).then(|| Action::Cmp(k - 1)),
            Some(Action::Cmp(j)) => {
                state.inserting()?;
                let fits = state.a[j] <= state.key?;
                (state.hole? == j + 1).then_some(if fits {
                    Action::Put(j + 1)
                } else {
                    Action::Shift(j)
                })
            }
            Some(Action::Shift(j)) => {
                state.inserting()?;
                Some(j.checked_sub(1).map_or(Action::Put(0), Action::Cmp))
            }
            Some(Action::Put(_)) => {
                let next = state.positions.len() + 1;
                if next < state.a.len() {
                    Some(Action::Take(next))
                } else {
                    (next == state.a.len()).then_some(Action::Done)
                }
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
        found.require(page::PERMUTATION, after.is_permutation(&input.a));
        found.require(page::PREFIX, after.prefix_is_sorted());
        found.require(page::HOLE, after.hole_fits());

        let counts = after.key.is_some() || after.counts_follow_from_positions();
        found.require(page::COUNTS, counts && after.shifts <= after.comparisons);

        let last = before.last.0;
        match *action {
            Action::Take(k) => {
                found.require(page::TAKE, before.key.is_none() && k == before.positions.len() + 1);
            }
            Action::Cmp(j) => {
                let moved = matches!(last, Some(Action::Take(_) | Action::Shift(_)));
                found.require(page::SCAN, moved && before.hole == Some(j + 1));
            }
            Action::Shift(j) => {
                let compared = last == Some(Action::Cmp(j)) && before.hole == Some(j + 1);
                found.require(page::SHIFT_ORDER, compared && before.a.get(j).copied() > before.key);
            }
            Action::Put(p) => {
                let stopped = p.checked_sub(1).is_none_or(|below| last == Some(Action::Cmp(below)));
                found.require(page::PUT, before.hole == Some(p) && stopped);
            }
            Action::Done => {
                let all = before.positions.len() + 1 == before.a.len();
                found.require(page::ALL_PUT, before.key.is_none() && all);
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Each pair of elements is compared once at most and shifted once at most; n-1 takes and
        // puts.
        2 * input.pairs() + 2 * (input.len() - 1) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "positions": state.positions,
            "comparisons": state.comparisons,
            "shifts": state.shifts,
        })
    }
}
