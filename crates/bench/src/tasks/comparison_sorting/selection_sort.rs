//! Selection Sort: find the least of the remaining cells and swap it to their front, pass by pass.
//!
//! A step is one action line: `cmp j m`, `min j`, `swap k m`, `pass` when a cell is settled,
//! `done`.

use crate::tasks::pages::selection_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `selection-sort`.
pub struct SelectionSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array; the first `k` cells hold their final values.
    pub a: Vec<i64>,
    /// Current pass, from 0, and the cell that it fills.
    pub k: usize,
    m: usize,
    selected: Vec<usize>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `cmp j m`: compares `a[j]` with `a[m]`, the least so far.
    Cmp(j, m) = "cmp",
    /// `min j`: makes `a[j]` the least so far.
    Min(j) = "min",
    /// `swap k m`: exchanges `a[k]` and `a[m]`.
    Swap(k, m) = "swap",
    /// Settles cell k and opens the next pass.
    Pass = "pass",
    /// Ends the trace.
    Done = "done",
});

impl State {
    /// The next action when place j has been compared and m is the least so far.
    fn after_place(&self, j: usize) -> Option<Action> {
        let State { k, m, .. } = *self;
        if j <= k || j >= self.a.len() || m < k || m > j {
            None
        } else if j + 1 < self.a.len() {
            Some(Action::Cmp(j + 1, m))
        } else if m != k {
            Some(Action::Swap(k, m))
        } else {
            Some(Action::Pass)
        }
    }
}

impl State {
    /// The place that the last line compared or chose.
    fn looked_at(&self) -> Option<usize> {
        match self.last.0 {
            Some(Action::Cmp(j, _) | Action::Min(j)) => Some(j),
            _ => None,
        }
    }

    fn scan_is_over(&self) -> bool {
        self.looked_at().is_some_and(|j| j + 1 == self.a.len())
    }

    /// Returns whether m is the first place of the least value of `a[k..end)`.
    fn chooses_least_before(&self, end: usize) -> bool {
        let (Some(passed), Some(rest)) = (self.a.get(self.k..self.m), self.a.get(self.m..end))
        else {
            return false;
        };
        rest.first().is_some_and(|least| {
            passed.iter().all(|x| x > least) && rest.iter().all(|x| x >= least)
        })
    }

    /// Returns whether this line may continue the scan or choose a place.
    fn may_scan(&self, action: &Action) -> bool {
        match (self.last.0, *action) {
            (None | Some(Action::Pass), Action::Cmp(j, _)) => Some(j) == self.k.checked_add(1),
            (_, Action::Cmp(j, _)) => self.looked_at().is_some_and(|seen| j == seen + 1),
            _ => true,
        }
    }
}

/// `n` values, at least two of them equal.
fn with_duplicate(n: usize, rng: &mut TaskRng) -> Vec<i64> {
    let mut a = array::uniform(n, -1000, 1000, rng);
    let to = rng.index(n);
    // Any of the n-1 other places.
    let from = (to + 1 + rng.index(n - 1)) % n;
    a[to] = a[from];
    a
}

impl Task for SelectionSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let duplicates = rng.chance(1, 5);
            let a = if duplicates {
                with_duplicate(n, rng)
            } else {
                array::distinct(n, -1000, 1000, rng)
            };

            let input = Input { a };
            if !input.a.is_sorted() && input.is_laborious_for::<Self>() {
                return input;
            }
        }
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            k: 0,
            m: 0,
            selected: Vec::new(),
            comparisons: 0,
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Cmp(j, m) => {
                require_places(&state.a, j, m)?;
                state.comparisons += 1;
            }
            Action::Min(j) => {
                require_places(&state.a, j, j)?;
                state.m = j;
            }
            Action::Swap(k, m) => {
                require_places(&state.a, k, m)?;
                state.a.swap(k, m);
                state.swaps += 1;
            }
            Action::Pass => {
                state.selected.push(state.m);
                state.k += 1;
                state.m = state.k;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let State { a, k, m, .. } = state;
        match state.last.0 {
            None => Some(Action::Cmp(1, 0)),
            Some(Action::Cmp(j, seen)) if seen == *m && seen < j => {
                let no_less = state.after_place(j)?;
                Some(if a[j] < a[*m] { Action::Min(j) } else { no_less })
            }
            Some(Action::Min(j)) if j == *m => state.after_place(j),
            Some(Action::Swap(to, from)) if to == *k && from == *m && from > to => {
                Some(Action::Pass)
            }
            Some(Action::Pass) if k + 1 < a.len() => Some(Action::Cmp(k + 1, *k)),
            Some(Action::Pass) if k + 1 == a.len() => Some(Action::Done),
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
        // Only swaps move values.
        if let Action::Swap(k, m) = *action {
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, k, m));
        }

        found.require(page::PREFIX, array::is_final_head(&after.a, after.k));
        found.require(page::M_RANGE, (after.k..after.a.len()).contains(&after.m));

        let selected = after.selected.iter().enumerate().all(|(pass, place)| *place >= pass);
        found.require(page::SELECTED, after.selected.len() == after.k && selected);
        let moved =
            after.selected.iter().enumerate().filter(|(pass, place)| **place != *pass).count()
                as u64;
        // A swap enters `selected` only at the `pass` that follows it.
        let swaps = moved + u64::from(matches!(action, Action::Swap(..)));
        found.require(page::COUNTS, after.swaps == swaps && after.comparisons <= input.pairs());
        found.require(page::SCAN, before.may_scan(action));

        match *action {
            Action::Cmp(j, m) => {
                found.require(page::LEAST, m == before.m && before.chooses_least_before(j));
            }
            Action::Min(j) => {
                let compared = before.last.0 == Some(Action::Cmp(j, before.m));
                found
                    .require(page::MIN_ORDER, compared && before.a.get(j) < before.a.get(before.m));
            }
            Action::Swap(k, m) => {
                found.require(page::WHOLE_SCAN, before.scan_is_over());
                found.require(
                    page::LEAST,
                    m == before.m && before.chooses_least_before(before.a.len()),
                );
                found.require(page::SWAP_PLACES, (k, m) == (before.k, before.m) && k != m);
            }
            Action::Pass => {
                let swapped = matches!(before.last.0, Some(Action::Swap(..)));
                found.require(
                    page::WHOLE_SCAN,
                    swapped || (before.scan_is_over() && before.m == before.k),
                );
                found.require(
                    page::COMPARISONS,
                    after.comparisons == input.pairs_of_passes(after.k as u64),
                );
            }
            Action::Done => {
                let passed = before.last.0 == Some(Action::Pass);
                found.require(
                    page::PASSES,
                    passed && before.k.checked_add(1) == Some(after.a.len()),
                );
            }
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Every comparison may find a new least; each of the n-1 passes has one swap at most.
        2 * input.pairs() + 2 * (input.len() - 1) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "selected": state.selected,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
