//! Stooge Sort: put the ends of a range in order, then sort its first two thirds, its last two and
//! its first two again.
//!
//! A step is one action line: `cmp l h` takes a range off the stack, `swap l h`, `done`.

use super::inversions::InversionChange;
use super::pair_scan::{Lines, PairLine, pair_lines};
use crate::tasks::pages::stooge_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places};

/// The task `stooge-sort`.
pub struct StoogeSort;

/// The longest array that a user may give: the comparisons grow as n to the power of 2.7.
const LENGTH_MAX: usize = 512;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// First and last cell of each range to do, both inclusive; the next one is last.
    pub stack: Vec<(usize, usize)>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    #[serde(skip)]
    inversion_change: InversionChange,
}

word_actions!(Action {
    /// `cmp l h`: takes the range off the stack, compares its ends and pushes its parts.
    Cmp(l, h) = "cmp",
    /// `swap l h`: exchanges `a[l]` and `a[h]`.
    Swap(l, h) = "swap",
    /// Ends the trace.
    Done = "done",
});
pair_lines!();

impl State {
    fn next_range(&self) -> Action {
        self.stack.last().map_or(Action::Done, |&(l, h)| Action::Cmp(l, h))
    }
}

/// Comparisons that sort a range of this length.
fn comparisons(length: u64) -> u64 {
    if length > 2 { 1 + 3 * comparisons(length - length / 3) } else { 1 }
}

impl Task for StoogeSort {
    task_items!(Input, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::laborious::<Self>(&page::size::N, difficulty, rng)
    }

    fn validate(input: &Input) -> Result<(), InvalidInput> {
        let n = input.a.len();
        InvalidInput::unless(
            n <= LENGTH_MAX,
            "a",
            format!("has {n} values; give 2 to {LENGTH_MAX}"),
        )?;
        input.validate()
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            stack: vec![(0, input.a.len() - 1)],
            comparisons: 0,
            swaps: 0,
            last: Last(None),
            inversion_change: InversionChange::default(),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        let ranges = state.stack.iter().all(|(l, h)| l < h && *h < n);
        InvalidInput::unless(
            ranges,
            "stack",
            format!("must be ranges of two cells or more, below {n}"),
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
            Action::Cmp(l, h) => {
                if state.stack.last() != Some(&(l, h)) {
                    return Err(Illegal("this range is not on top of the stack"));
                }

                state.stack.pop();
                let length = h - l + 1;
                if length > 2 {
                    let third = length / 3;
                    state.stack.extend([(l, h - third), (l + third, h), (l, h - third)]);
                }

                state.comparisons += 1;
            }
            Action::Swap(l, h) => {
                require_places(&state.a, l, h)?;
                state.inversion_change.exchange(&mut state.a, l, h);
                state.swaps += 1;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            Some(Action::Cmp(l, h)) if state.a[l] > state.a[h] => Some(Action::Swap(l, h)),
            Some(Action::Done) => None,
            _ => Some(state.next_range()),
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::INVERSIONS, after.inversion_change.covers(after.swaps));
        found.require(page::STACK, after.stack.iter().all(|&(l, h)| l < h && h < after.a.len()));

        if let Action::Swap(l, h) = *action {
            // Only swaps move values.
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
            found.require(page::SWAP_ORDER, l < h && after.a[l] < after.a[h]);
        }
        found.require(page::COUNTS, after.swaps <= after.comparisons);

        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::IN_ORDER, lines.leave_in_order(&before.a));

        if *action == Action::Done {
            found.require(page::EMPTY_STACK, after.stack.is_empty());
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // A comparison has one swap at most, and a swap takes away at least one inversion.
        let comparisons = comparisons(input.len());
        comparisons + comparisons.min(input.pairs()) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({ "sorted": state.a, "comparisons": state.comparisons, "swaps": state.swaps })
    }
}
