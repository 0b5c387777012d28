//! Odd-Even Sort: compare the pairs at odd places, then those at even places, until a round of both
//! swaps nothing.
//!
//! A step is one action line: `cmp i i+1`, `swap i i+1`, `phase` at the end of a phase, `done` at
//! the end of the last.

use super::inversions::InversionChange;
use super::pair_scan::{Lines, PairLine, Scan, pair_lines};
use crate::tasks::pages::odd_even_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `odd-even-sort`.
pub struct OddEvenSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// True if the current round, an odd and an even phase, has made a swap.
    pub swapped: bool,
    comparisons: u64,
    swaps: u64,
    /// Finished phases; phase 0 compares the pairs at odd places, phase 1 those at even ones.
    pub phases: u64,
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
    /// Ends a phase and opens the next.
    Phase = "phase",
    /// Ends the last phase and the trace.
    Done = "done",
});
pair_lines!();

/// The first left place of a phase after `phases` finished ones: odd phases come first.
fn first_place(phases: u64) -> usize {
    usize::from(phases.is_multiple_of(2))
}

impl State {
    /// The comparison at this left place, or the end of the phase if the place has no right
    /// neighbour.
    fn at(&self, i: usize) -> Action {
        if i + 1 < self.a.len() {
            Action::Cmp(i, i + 1)
        } else if self.swapped || self.phases.is_multiple_of(2) {
            Action::Phase
        } else {
            Action::Done
        }
    }

    /// The pairs of the current phase; `None` if it has none.
    fn scan(&self) -> Option<Scan> {
        let first = usize::from(self.phases.is_multiple_of(2));
        let highest = self.a.len().checked_sub(2).filter(|highest| first <= *highest)?;
        // All left places of a phase have the parity of the first.
        let last = highest - (highest - first) % 2;
        Some(Scan { first, last, step: 2 })
    }

    fn is_pair_of_the_phase(&self, i: usize, j: usize) -> bool {
        j == i + 1 && i % 2 == first_place(self.phases)
    }
}

impl Task for OddEvenSort {
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
            phases: 0,
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
            Action::Phase => {
                state.phases += 1;
                // A round has two phases.
                if state.phases.is_multiple_of(2) {
                    state.swapped = false;
                }
            }
            Action::Done => state.phases += 1,
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            None | Some(Action::Phase) => Some(state.at(first_place(state.phases))),
            Some(Action::Cmp(i, j)) if state.is_pair_of_the_phase(i, j) => {
                Some(if state.a[i] > state.a[j] { Action::Swap(i, j) } else { state.at(i + 2) })
            }
            Some(Action::Swap(i, j)) if state.is_pair_of_the_phase(i, j) => Some(state.at(i + 2)),
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
        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(page::ADJACENT, j == i + 1);
            found.require(page::PARITY, i.is_multiple_of(2) != after.phases.is_multiple_of(2));
        }
        found.require(page::COUNTS, after.swaps <= after.comparisons);

        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::SCAN, lines.follow(before.scan()));
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::IN_ORDER, lines.leave_in_order(&before.a));

        if matches!(action, Action::Phase | Action::Done) {
            let whole = before.scan().map_or(lines.seen().is_none(), |scan| lines.complete(scan));
            found.require(page::WHOLE_SCAN, whole);

            let (n, phases) = (input.len(), after.phases);
            // ceil(n/2) rounds sort any array, and one more swaps nothing.
            let in_time = phases <= 2 * (n.div_ceil(2) + 1);
            let ends_idle_round = phases.is_multiple_of(2) && !before.swapped;
            found.require(page::PHASES, in_time && (*action == Action::Done) == ends_idle_round);
            let compared = || phases.div_ceil(2) * ((n - 1) / 2) + phases / 2 * (n / 2);
            found.require(page::COMPARISONS, in_time && after.comparisons == compared());
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // n phases sort any array, and one more round swaps nothing; a round has n-1 comparisons
        // and two phases. A swap takes away one inversion.
        let n = input.len();
        (n.div_ceil(2) + 1) * (n + 1) + input.pairs()
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
            "phases": state.phases,
        })
    }
}
