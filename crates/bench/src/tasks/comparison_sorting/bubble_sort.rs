//! Bubble Sort: compare neighbours, swap those out of order, pass by pass, until a pass swaps
//! nothing.
//!
//! A step is one action line: `cmp i i+1`, `swap i i+1`, `pass` at the end of a pass, `done` at the
//! end of the last.

use super::inversions::InversionChange;
use super::pair_scan::{Lines, PairLine, Scan, pair_lines};
use crate::tasks::pages::bubble_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `bubble-sort`.
pub struct BubbleSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// True if the current pass has made a swap.
    pub swapped: bool,
    /// Number of `cmp` so far.
    pub comparisons: u64,
    /// Number of `swap` so far.
    pub swaps: u64,
    /// Finished passes; each settles one more cell at the end.
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
    /// Ends a pass and opens the next.
    Pass = "pass",
    /// Ends the last pass and the trace.
    Done = "done",
});
pair_lines!();

/// The left place of the last pair of the pass that follows `passes` passes; `None` if no pair is
/// left.
pub fn last_left(n: usize, passes: u64) -> Option<usize> {
    n.checked_sub(2)?.checked_sub(usize::try_from(passes).ok()?)
}

impl State {
    /// The pairs of the current pass; `None` if only settled cells are left.
    fn scan(&self) -> Option<Scan> {
        let unsettled = self.a.len().checked_sub(usize::try_from(self.passes).ok()?)?;
        Some(Scan { first: 0, last: unsettled.checked_sub(2)?, step: 1 })
    }
}

impl Task for BubbleSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            swapped: false,
            comparisons: 0,
            swaps: 0,
            passes: 0,
            last: Last(None),
            inversion_change: InversionChange::default(),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
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
                state.passes += 1;
                state.swapped = false;
            }
            Action::Done => state.passes += 1,
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        let after_pair = |right: usize| {
            let last = last_left(n, state.passes)?;
            if right <= last {
                Some(Action::Cmp(right, right + 1))
            } else if right == last + 1 {
                // After a pass over a single pair no unsettled pair is left.
                Some(if !state.swapped || last == 0 { Action::Done } else { Action::Pass })
            } else {
                None
            }
        };

        match state.last.0 {
            None => Some(Action::Cmp(0, 1)),
            Some(Action::Pass) => last_left(n, state.passes).map(|_| Action::Cmp(0, 1)),
            Some(Action::Cmp(i, j)) if j == i + 1 && last_left(n, state.passes)? >= i => {
                if state.a[i] > state.a[j] { Some(Action::Swap(i, j)) } else { after_pair(j) }
            }
            Some(Action::Swap(i, j)) if j == i + 1 => after_pair(j),
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
        if matches!(action, Action::Swap(..)) {
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
        }

        found.require(page::INVERSIONS, after.inversion_change.makes_up_for(after.swaps));
        // Each pass settles the greatest of the cells that are left.
        let settled = usize::try_from(after.passes).unwrap_or(usize::MAX);
        found.require(
            page::TAIL,
            array::is_final_tail(&after.a, after.a.len().saturating_sub(settled)),
        );

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
        // n(n-1)/2 comparisons, as many swaps, n passes.
        input.len() * input.len()
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
