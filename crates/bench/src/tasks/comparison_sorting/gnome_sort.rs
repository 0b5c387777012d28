//! Gnome Sort: walk up while neighbours are in order; move a value that is out of order down, one
//! swap at a time.
//!
//! A step is one action line: `cmp p-1 p`, `swap p-1 p`, `done`.

use super::inversions::InversionChange;
use super::pair_scan::{Lines, PairLine, pair_lines};
use crate::tasks::pages::gnome_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `gnome-sort`.
pub struct GnomeSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    comparisons: u64,
    swaps: u64,
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
    /// Ends the trace.
    Done = "done",
});
pair_lines!();

/// Returns whether the walk leads from the last line to this one.
fn is_walk(last: Option<Action>, action: Action, n: usize) -> bool {
    match (last, action) {
        (None, Action::Cmp(i, _)) => i == 0,
        (Some(Action::Cmp(below, _)), Action::Cmp(i, _)) => i == below + 1,
        // At the bottom the walk turns.
        (Some(Action::Swap(above, _)), Action::Cmp(i, _)) => i == above.saturating_sub(1),
        (_, Action::Done) => n >= 2 && last == Some(Action::Cmp(n - 2, n - 1)),
        (_, Action::Swap(..)) => true,
        (Some(Action::Done), Action::Cmp(..)) => false,
    }
}

impl Task for GnomeSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let inversion_change = InversionChange::default();
        State { a: input.a.clone(), comparisons: 0, swaps: 0, last: Last(None), inversion_change }
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
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            Some(Action::Cmp(i, j)) if j == i + 1 => Some(if state.a[i] > state.a[j] {
                Action::Swap(i, j)
            } else if j + 1 < state.a.len() {
                Action::Cmp(j, j + 1)
            } else {
                Action::Done
            }),
            // At the bottom the walk turns without an action.
            None | Some(Action::Swap(0, 1)) => Some(Action::Cmp(0, 1)),
            Some(Action::Swap(i, j)) if j == i + 1 => Some(Action::Cmp(i - 1, i)),
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
        found.require(page::INVERSIONS, after.inversion_change.makes_up_for(after.swaps));

        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(page::ADJACENT, j == i + 1);
        }

        if let Action::Swap(i, j) = *action {
            // Only swaps move values.
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
            found.require(page::SWAP_ORDER, after.a[i] < after.a[j]);
        }

        // Each swap adds at most two comparisons to the n - 1 of a walk without swaps.
        let most = after.swaps.saturating_mul(2).saturating_add(input.len() - 1);
        found.require(page::COUNTS, (after.swaps..=most).contains(&after.comparisons));
        found.require(page::WALK, is_walk(before.last.0, *action, after.a.len()));

        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::IN_ORDER, lines.leave_in_order(&before.a));

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // A swap takes away one inversion and one step back at most; n-1 comparisons more lead to
        // the end.
        3 * input.pairs() + input.len()
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({ "sorted": state.a, "comparisons": state.comparisons, "swaps": state.swaps })
    }
}
