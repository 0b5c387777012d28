//! Cocktail Shaker Sort: bubble sort whose passes go up and down in turn, between ends that close
//! in.
//!
//! A step is one action line: `cmp i i+1`, `swap i i+1`, `pass` at the end of a pass, `done` at the
//! end of the last.

use super::inversions::InversionChange;
use super::pair_scan::{Lines, PairLine, Scan, pair_lines};
use crate::tasks::pages::cocktail_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `cocktail-sort`.
pub struct CocktailSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// First unsettled cell, from 0; each downward pass settles one.
    pub lo: u64,
    /// Negative after surplus passes.
    pub hi: i64,
    /// True if the current pass has made a swap.
    pub swapped: bool,
    comparisons: u64,
    swaps: u64,
    /// Finished passes; even ones go up, odd ones go down, counted from 0.
    pub passes: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    inversion_change: InversionChange,
}

word_actions!(Action {
    /// `cmp i j`: compares `a[i]` with `a[j]`.
    Cmp(i, j) = "cmp",
    /// `swap i j`: exchanges `a[i]` and `a[j]`.
    Swap(i, j) = "swap",
    /// Ends a pass, settles the cell at its end and opens the next.
    Pass = "pass",
    /// Ends the last pass and the trace.
    Done = "done",
});
pair_lines!();

impl State {
    fn goes_up(&self) -> bool {
        self.passes.is_multiple_of(2)
    }

    /// The places `lo` and `hi`, while there is a pair between them.
    fn ends(&self) -> Option<(usize, usize)> {
        let (lo, hi) = (usize::try_from(self.lo).ok()?, usize::try_from(self.hi).ok()?);
        (lo < hi).then_some((lo, hi))
    }

    fn first_pair(&self) -> Option<Action> {
        let (lo, hi) = self.ends()?;
        Some(if self.goes_up() { Action::Cmp(lo, lo + 1) } else { Action::Cmp(hi - 1, hi) })
    }

    /// The next action when the pair i, j = i + 1 is in order.
    fn after_pair(&self, i: usize, j: usize) -> Option<Action> {
        let (lo, hi) = self.ends()?;
        if j != i + 1 || i < lo || j > hi {
            None
        } else if self.goes_up() && j < hi {
            Some(Action::Cmp(j, j + 1))
        } else if !self.goes_up() && i > lo {
            Some(Action::Cmp(i - 1, i))
        } else if !self.swapped || hi - lo == 1 {
            Some(Action::Done)
        } else {
            Some(Action::Pass)
        }
    }

    /// The pairs of the current pass; `None` if only settled cells are left.
    fn scan(&self) -> Option<Scan> {
        let (lo, hi) = (usize::try_from(self.lo).ok()?, usize::try_from(self.hi).ok()?);
        let highest = hi.checked_sub(1).filter(|highest| lo <= *highest)?;
        let up = self.passes.is_multiple_of(2);
        let (first, last, step) = if up { (lo, highest, 1) } else { (highest, lo, -1) };
        Some(Scan { first, last, step })
    }

    fn ends_are_in_place(&self) -> bool {
        // Surplus passes take `lo` beyond the array or `hi` below it; then all cells must be in
        // place.
        let head = usize::try_from(self.lo).unwrap_or(usize::MAX);
        let tail = usize::try_from(self.hi + 1).unwrap_or(0);
        array::is_final_head(&self.a, head) && array::is_final_tail(&self.a, tail)
    }
}

impl Task for CocktailSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            lo: 0,
            hi: i64::try_from(input.a.len()).expect("invariant: lengths are bounded") - 1,
            swapped: false,
            comparisons: 0,
            swaps: 0,
            passes: 0,
            last: Last(None),
            inversion_change: InversionChange::default(),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        limits::within(
            "hi",
            [state.hi],
            i64::MIN..=i64::try_from(input.a.len()).unwrap_or(i64::MAX) - 1,
        )?;

        if let Some(Action::Cmp(i, j) | Action::Swap(i, j)) = state.last.0 {
            limits::below("last", [i, j], state.a.len())?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn complete(input: &Input, state: &mut State) {
        state.inversion_change = InversionChange::between(&input.a, &state.a);
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Cmp(i, j) => {
                require_places(&state.a, i, j)?;
                state.comparisons += 1;
            }
            Action::Swap(i, j) => {
                require_places(&state.a, i, j)?;
                state.inversion_change.exchange(&mut state.a, i, j);
                state.swaps += 1;
                state.swapped = true;
            }
            Action::Pass => {
                // An upward pass settles the highest cell, a downward one the lowest.
                if state.goes_up() {
                    state.hi -= 1;
                } else {
                    state.lo += 1;
                }
                state.swapped = false;
                state.passes += 1;
            }
            Action::Done => state.passes += 1,
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            None | Some(Action::Pass) => state.first_pair(),
            Some(Action::Cmp(i, j)) => {
                let in_order = state.after_pair(i, j)?;
                Some(if state.a[i] > state.a[j] { Action::Swap(i, j) } else { in_order })
            }
            Some(Action::Swap(i, j)) => state.after_pair(i, j),
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
        // Only swaps move values.
        if matches!(action, Action::Swap(..)) {
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
        }

        found.require(page::INVERSIONS, after.inversion_change.makes_up_for(after.swaps));
        found.require(page::ENDS, after.ends_are_in_place());

        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(page::ADJACENT, j == i + 1);
        }
        found.require(
            page::COUNTS,
            after.swaps <= after.comparisons && after.comparisons <= input.pairs(),
        );

        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::SCAN, lines.follow(before.scan()));
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::IN_ORDER, lines.leave_in_order(&before.a));

        if matches!(action, Action::Pass | Action::Done) {
            found.require(page::WHOLE_SCAN, before.scan().is_some_and(|scan| lines.complete(scan)));

            // Another pass is due if this one swapped and passes are left.
            let left = (input.len() - 1).checked_sub(after.passes);
            let ends =
                left.is_some_and(|left| (*action == Action::Pass) == (before.swapped && left > 0));
            found.require(page::PASSES, ends);

            found.require(
                page::COMPARISONS,
                after.comparisons == input.pairs_of_passes(after.passes),
            );
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Each pass compares one pair fewer, from n-1 down to 1; a swap takes away one inversion.
        2 * input.pairs() + input.len() - 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
            "passes": state.passes,
        })
    }
}
