//! Pancake Sort: find the greatest of the unsorted cells, flip it to the front and then to their
//! end.
//!
//! A step is one action line: `cmp j m`, `max j`, `flip k`, `pass` when a cell is settled, `done`.

use crate::tasks::pages::pancake_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `pancake-sort`.
pub struct PancakeSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// Place of the greatest element that the scan has found, from 0; flips do not change it.
    pub m: usize,
    flips: Vec<usize>,
    /// Number of unsorted cells at the front; n at the start.
    pub size: usize,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `cmp j m`: compares `a[j]` with `a[m]`, the greatest so far.
    Cmp(j, m) = "cmp",
    /// `max j`: makes `a[j]` the greatest so far.
    Max(j) = "max",
    /// `flip k`: reverses the first k cells.
    Flip(k) = "flip",
    /// Settles the last unsorted cell.
    Pass = "pass",
    /// Ends the trace.
    Done = "done",
});

impl State {
    /// The next action when place j has been compared and m is the greatest so far.
    fn after_place(&self, j: usize) -> Option<Action> {
        if j == 0 || j >= self.size || self.m >= self.size {
            None
        } else if j + 1 < self.size {
            Some(Action::Cmp(j + 1, self.m))
        } else if self.m == j {
            Some(Action::Pass)
        } else {
            // The greatest goes to the front first, unless it is there.
            Some(Action::Flip(if self.m > 0 { self.m + 1 } else { self.size }))
        }
    }
}

impl State {
    /// The place that the last line compared or chose.
    fn looked_at(&self) -> Option<usize> {
        match self.last.0 {
            Some(Action::Cmp(j, _) | Action::Max(j)) => Some(j),
            _ => None,
        }
    }

    fn scan_is_over(&self) -> bool {
        self.looked_at().is_some_and(|j| j.checked_add(1) == Some(self.size))
    }

    /// Returns whether m is the first place of the greatest value of `a[..end)`.
    fn chooses_greatest_before(&self, end: usize) -> bool {
        let (Some(passed), Some(rest)) = (self.a.get(..self.m), self.a.get(self.m..end)) else {
            return false;
        };
        rest.first().is_some_and(|greatest| {
            passed.iter().all(|x| x < greatest) && rest.iter().all(|x| x <= greatest)
        })
    }

    fn may_scan(&self, j: usize) -> bool {
        let first = matches!(self.last.0, None | Some(Action::Pass));
        j < self.size
            && if first {
                j == 1
            } else {
                self.looked_at().is_some_and(|seen| seen.checked_add(1) == Some(j))
            }
    }

    /// Returns whether a flip of k cells brings the greatest of the unsorted cells to the front, or
    /// from there to their end.
    fn may_flip(&self, k: usize) -> bool {
        let to_front = self.m > 0 && k == self.m + 1 && k < self.size;
        let from_front = k == self.size
            && self.a.get(..k).is_some_and(|cells| cells.iter().max() == cells.first());

        match self.last.0 {
            Some(Action::Flip(front)) => from_front && front < k && front == self.m + 1,
            _ => self.scan_is_over() && (to_front || (from_front && self.m == 0)),
        }
    }
}

impl Task for PancakeSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let a = input.a.clone();
        State { m: 0, flips: Vec::new(), size: a.len(), comparisons: 0, last: Last(None), a }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        let size = state.size;
        InvalidInput::unless((1..=n).contains(&size), "size", format!("is {size}; give 1 to {n}"))?;
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Cmp(j, m) => {
                require_places(&state.a, j, m)?;
                state.comparisons += 1;
            }
            Action::Max(j) => {
                require_places(&state.a, j, j)?;
                state.m = j;
            }
            Action::Flip(k) => {
                state.a.get_mut(..k).ok_or(Illegal("the array has fewer cells"))?.reverse();
                state.flips.push(k);
            }
            Action::Pass => {
                if state.size <= 1 {
                    return Err(Illegal("a single cell is left"));
                }
                state.size -= 1;
                state.m = 0;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let State { a, m, size, .. } = state;
        match state.last.0 {
            Some(Action::Pass) if *size == 1 => Some(Action::Done),
            None | Some(Action::Pass) => Some(Action::Cmp(1, 0)),
            // The scan has passed m.
            Some(Action::Cmp(j, seen)) if seen == *m && *m < j => {
                let no_greater = state.after_place(j)?;
                Some(if a[j] > a[*m] { Action::Max(j) } else { no_greater })
            }
            Some(Action::Max(j)) => state.after_place(j),
            // Without a flip to make, m is the last unsorted cell.
            Some(Action::Flip(k)) if m + 1 < *size => {
                if k == *size {
                    Some(Action::Pass)
                } else {
                    (*m > 0 && k == m + 1).then_some(Action::Flip(*size))
                }
            }
            Some(_) => None,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Only flips move values.
        if matches!(action, Action::Flip(_)) {
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
        }

        let n = after.a.len();
        found.require(page::SUFFIX, array::is_final_tail(&after.a, after.size));
        found.require(page::M_RANGE, after.m < after.size);

        let few_flips = after.flips.len() <= 2 * (n - after.size + 1);
        found.require(page::FLIPS, few_flips && after.flips.iter().all(|k| (2..=n).contains(k)));
        found.require(page::COUNTS, after.comparisons <= input.pairs());

        match *action {
            Action::Cmp(j, m) => {
                found.require(page::SCAN, before.may_scan(j));
                found.require(page::GREATEST, m == before.m && before.chooses_greatest_before(j));
            }
            Action::Max(j) => {
                let compared = before.last.0 == Some(Action::Cmp(j, before.m));
                found
                    .require(page::MAX_ORDER, compared && before.a.get(j) > before.a.get(before.m));
            }
            Action::Flip(k) => {
                let follows_flip = matches!(before.last.0, Some(Action::Flip(_)));
                found.require(
                    page::GREATEST,
                    follows_flip || before.chooses_greatest_before(before.size),
                );
                found.require(page::FLIP_ORDER, before.may_flip(k));
            }
            Action::Pass => {
                let flipped = before.last.0 == Some(Action::Flip(before.size));
                let in_place = before.scan_is_over() && before.m + 1 == before.size;
                found.require(page::WHOLE_SCAN, flipped || in_place);

                let passes = (n - after.size) as u64;
                found
                    .require(page::COMPARISONS, after.comparisons == input.pairs_of_passes(passes));
            }
            Action::Done => {
                found
                    .require(page::PASSES, before.last.0 == Some(Action::Pass) && before.size == 1);
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Every comparison may find a new maximum; each of the n-1 passes has two flips at most.
        2 * input.pairs() + 3 * (input.len() - 1) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({ "sorted": state.a, "flips": state.flips, "comparisons": state.comparisons })
    }
}
