//! Comb Sort: passes that compare cells at a distance, which shrinks by 10/13 from pass to pass
//! down to 1.
//!
//! A step is one action line: `gap g` opens a pass, `cmp i i+g`, `swap i i+g`, `done`.

use super::pair_scan::{Lines, PairLine, Scan, pair_lines};
use crate::tasks::pages::comb_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `comb-sort`.
pub struct CombSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// The gap of every pass begun, in order; the current one is last.
    pub gaps: Vec<usize>,
    /// True if the current pass has made a swap.
    pub swapped: bool,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `gap g`: opens a pass that compares cells g apart.
    Gap(g) = "gap",
    /// `cmp i j`: compares `a[i]` with `a[j]`.
    Cmp(i, j) = "cmp",
    /// `swap i j`: exchanges `a[i]` and `a[j]`.
    Swap(i, j) = "swap",
    /// Ends the trace.
    Done = "done",
});
pair_lines!();

/// The gap of the pass after one with this gap.
fn shrunk(gap: usize) -> usize {
    (10 * gap / 13).max(1)
}

impl State {
    /// The next action when the pair i, j is in order.
    fn after_pair(&self, i: usize, j: usize) -> Option<Action> {
        let gap = *self.gaps.last()?;
        if gap == 0 || j != i + gap {
            None
        } else if j + 1 < self.a.len() {
            Some(Action::Cmp(i + 1, j + 1))
        } else if gap == 1 && !self.swapped {
            Some(Action::Done)
        } else {
            Some(Action::Gap(shrunk(gap)))
        }
    }
}

impl State {
    /// The pairs of the current pass; `None` before the first.
    fn scan(&self) -> Option<Scan> {
        let pairs = self.a.len().checked_sub(*self.gaps.last()?)?;
        Some(Scan { first: 0, last: pairs.checked_sub(1)?, step: 1 })
    }

    fn gaps_shrink(&self) -> bool {
        let n = self.a.len();
        // The quotient of 10·previous and 13, rounded down, but not below 1.
        let shrinks = |previous: usize, gap: usize| {
            10 * previous < 13 * (gap + 1) && (gap == 1 || 13 * gap <= 10 * previous)
        };
        self.gaps.iter().all(|gap| (1..n).contains(gap))
            && self.gaps.first().is_none_or(|first| shrinks(n, *first))
            && self.gaps.windows(2).all(|pair| shrinks(pair[0], pair[1]))
    }

    /// Returns whether the line opens a pass, or ends the trace, when it may.
    fn may_end_pass(&self, action: &Action) -> bool {
        // With gap 1, n passes sort any array.
        let ones = || self.gaps.iter().rev().take_while(|gap| **gap == 1).count();
        match action {
            Action::Gap(_) => {
                self.gaps.last() != Some(&1) || (self.swapped && ones() < self.a.len())
            }
            Action::Done => self.gaps.last() == Some(&1) && !self.swapped,
            Action::Cmp(..) | Action::Swap(..) => true,
        }
    }
}

impl Task for CombSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            gaps: Vec::new(),
            swapped: false,
            comparisons: 0,
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        if let Some(Action::Cmp(i, j) | Action::Swap(i, j)) = state.last.0 {
            limits::below("last", [i, j], state.a.len())?;
        }
        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Gap(g) => {
                state.gaps.push(g);
                state.swapped = false;
            }
            Action::Cmp(i, j) => {
                require_places(&state.a, i, j)?;
                state.comparisons += 1;
            }
            Action::Swap(i, j) => {
                require_places(&state.a, i, j)?;
                state.a.swap(i, j);
                state.swaps += 1;
                state.swapped = true;
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        match state.last.0 {
            None => Some(Action::Gap(shrunk(n))),
            Some(Action::Gap(g)) => (1..n).contains(&g).then_some(Action::Cmp(0, g)),
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
        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(
                page::STRIDE,
                after.gaps.last().is_some_and(|gap| j.checked_sub(i) == Some(*gap)),
            );
        }

        if let Action::Swap(i, j) = *action {
            // Only swaps move values.
            found.require(page::PERMUTATION, array::is_permutation(&after.a, &input.a));
            found.require(page::SWAP_ORDER, after.a[i] < after.a[j]);
        }

        found.require(page::GAPS, after.gaps_shrink());
        found.require(page::COUNTS, after.swaps <= after.comparisons);

        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::SCAN, lines.follow(before.scan()));
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::IN_ORDER, lines.leave_in_order(&before.a));
        found.require(page::PASSES, before.may_end_pass(action));

        if matches!(action, Action::Gap(_) | Action::Done) {
            let opens = before.last.0.is_none() && *action != Action::Done;
            found.require(
                page::WHOLE_SCAN,
                opens || before.scan().is_some_and(|scan| lines.complete(scan)),
            );

            let of_pass = |gap: &usize| after.a.len().saturating_sub(*gap) as u64;
            found.require(
                page::COMPARISONS,
                after.comparisons == before.gaps.iter().map(of_pass).sum::<u64>(),
            );
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        let n = input.a.len();
        let mut steps = 1;
        let mut gap = shrunk(n);
        // A pass has its own line and a comparison for each of its n - gap pairs.
        while gap > 1 {
            steps += (1 + n - gap) as u64;
            gap = shrunk(gap);
        }

        // With gap 1, each pass brings the greatest element that is left to its place: n passes,
        // including the one that swaps nothing. A swap removes at least one inversion.
        steps + input.len() * input.len() + input.pairs()
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "gaps": state.gaps,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
