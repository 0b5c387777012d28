//! Shell Sort with Knuth's gaps: insertion sort of the elements that lie a gap apart, for smaller
//! and smaller gaps.
//!
//! A step is one action line: `gap h`, `take k`, `cmp k-h k`, `swap k-h k`, `done`.

use super::pair_scan::{Lines, PairLine, pair_lines};
use crate::tasks::pages::shell_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `shell-sort`.
pub struct ShellSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// The gaps begun, in order; the current one is last.
    pub gaps: Vec<usize>,
    /// Cell whose element is being inserted, from 0; none before the first `take`.
    pub k: Option<usize>,
    comparisons: Vec<u64>,
    swaps: Vec<u64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `gap h`: begins the insertions among cells h apart.
    Gap(h) = "gap",
    /// `take k`: begins the insertion of `a[k]`.
    Take(k) = "take",
    /// `cmp i j`: compares `a[i]` with `a[j]`.
    Cmp(i, j) = "cmp",
    /// `swap i j`: exchanges `a[i]` and `a[j]`.
    Swap(i, j) = "swap",
    /// Ends the trace.
    Done = "done",
});
pair_lines!();

const NO_GAP: Illegal = Illegal("no gap has been begun");

/// Knuth's gaps 1, 4, 13, ... below n, least first.
fn knuth_gaps(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |gap| Some(3 * gap + 1)).take_while(move |gap| *gap < n)
}

fn greatest_gap_below(n: usize) -> Option<usize> {
    knuth_gaps(n).last()
}

/// Returns whether the gaps begun are Knuth's, beginning with the greatest below n.
fn are_first_gaps(gaps: &[usize], n: usize) -> bool {
    let thirds = gaps.windows(2).all(|pair| pair[1] > 0 && pair[0] == 3 * pair[1] + 1);
    gaps.first().copied() == greatest_gap_below(n) && thirds
}

impl State {
    /// The next action when the element taken last is in its place.
    fn after_take(&self, gap: usize) -> Option<Action> {
        let next = self.k? + 1;
        Some(if next < self.a.len() {
            Action::Take(next)
        } else if gap > 1 {
            // Knuth's gaps are h, 3h + 1, …: rounding down leads from each to the next smaller one.
            Action::Gap(gap / 3)
        } else {
            Action::Done
        })
    }
}

impl State {
    /// Returns whether the gaps begun are Knuth's, none left out, beginning with the greatest below
    /// n.
    fn gaps_are_knuths(&self) -> bool {
        let Some(&first) = self.gaps.first() else { return true };
        let knuth = std::iter::successors(Some(first), |gap| (gap % 3 == 1).then_some(gap / 3));
        let greatest = first < self.a.len() && self.a.len() <= 3 * first + 1;
        let thirds = |pair: &[usize]| pair[1] > 0 && pair[0] / 3 == pair[1] && pair[0] % 3 == 1;

        // Repeating (gap - 1)/3 leads from one of Knuth's gaps to 0.
        greatest && knuth.last() == Some(0) && self.gaps.windows(2).all(thirds)
    }

    fn is_sorted_by_gap(&self, gap: usize) -> bool {
        self.a.iter().zip(self.a.iter().skip(gap)).all(|(lower, upper)| lower <= upper)
    }

    /// Returns whether the line, if it ends the walk of the element taken last, finds it in its
    /// place.
    fn may_leave(&self, action: &Action) -> bool {
        match (self.last.0, *action) {
            (_, Action::Cmp(..) | Action::Swap(..))
            | (None, Action::Gap(_))
            | (Some(Action::Gap(_)), Action::Take(_)) => true,
            (Some(Action::Cmp(i, j)), _) => self.a.get(i) <= self.a.get(j),
            (Some(Action::Swap(i, _)), _) => self.gaps.last().is_some_and(|gap| i < *gap),
            _ => false,
        }
    }

    /// Returns whether a line that takes or compares an element names the place that is due.
    fn may_walk(&self, action: &Action) -> bool {
        match (self.last.0, *action) {
            (Some(Action::Gap(h)), Action::Take(k)) => k == h,
            (_, Action::Take(k)) => self.k.is_some_and(|last| k == last + 1),
            (Some(Action::Take(k)), Action::Cmp(_, j)) => j == k,
            (Some(Action::Swap(i, _)), Action::Cmp(_, j)) => j == i,
            (_, Action::Cmp(..)) => false,
            (_, Action::Gap(_) | Action::Swap(..) | Action::Done) => true,
        }
    }

    fn counts_fit_gaps(&self) -> bool {
        if self.comparisons.len() != self.gaps.len() || self.swaps.len() != self.gaps.len() {
            return false;
        }

        self.gaps.iter().zip(self.swaps.iter().zip(&self.comparisons)).all(
            |(gap, (swaps, comparisons))| {
                // Each element taken has a comparison for each of its swaps and at most one more.
                let taken = self.a.len().saturating_sub(*gap) as u64;
                (*swaps..=swaps.saturating_add(taken)).contains(comparisons)
            },
        )
    }
}

impl Task for ShellSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let a = input.a.clone();
        State {
            a,
            gaps: Vec::new(),
            k: None,
            comparisons: Vec::new(),
            swaps: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::below("k", state.k, n)?;
        limits::length("comparisons", state.comparisons.len(), state.gaps.len())?;
        limits::length("swaps", state.swaps.len(), state.gaps.len())?;

        match state.last.0 {
            Some(Action::Gap(h)) => {
                InvalidInput::unless(
                    state.gaps.last() == Some(&h),
                    "last",
                    "must begin the last of `gaps`",
                )?;
            }
            Some(Action::Take(k)) => limits::below("last", [k], n)?,
            _ => {}
        }

        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Gap(h) => {
                state.gaps.push(h);
                state.comparisons.push(0);
                state.swaps.push(0);
            }
            Action::Take(k) => {
                require_places(&state.a, k, k)?;
                state.k = Some(k);
            }
            Action::Cmp(i, j) => {
                require_places(&state.a, i, j)?;
                *state.comparisons.last_mut().ok_or(NO_GAP)? += 1;
            }
            Action::Swap(i, j) => {
                require_places(&state.a, i, j)?;
                *state.swaps.last_mut().ok_or(NO_GAP)? += 1;
                state.a.swap(i, j);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        let Some(last) = state.last.0 else { return greatest_gap_below(n).map(Action::Gap) };
        let gap = *state.gaps.last()?;

        // After a wrong gap nothing is prescribed.
        if !are_first_gaps(&state.gaps, n) {
            return None;
        }

        // True if the element taken last may be at j now.
        let on_its_way = |j: usize| state.k.is_some_and(|k| j <= k && (k - j).is_multiple_of(gap));

        match last {
            Action::Gap(h) => Some(Action::Take(h)),
            Action::Take(k) => Some(Action::Cmp(k.checked_sub(gap)?, k)),
            Action::Cmp(i, j) if j == i + gap && on_its_way(j) => {
                if state.a[i] <= state.a[j] {
                    state.after_take(gap)
                } else {
                    Some(Action::Swap(i, j))
                }
            }
            Action::Swap(i, j) if j == i + gap && on_its_way(j) => match i.checked_sub(gap) {
                Some(next) => Some(Action::Cmp(next, i)),
                None => state.after_take(gap),
            },
            _ => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::GAPS, after.gaps_are_knuths());

        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(
                page::STRIDE,
                after.gaps.last().is_some_and(|gap| i.checked_add(*gap) == Some(j)),
            );
        }

        if let Action::Swap(i, j) = *action {
            // Only swaps move values.
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, i, j));
            found.require(page::SWAP_ORDER, after.a[i] < after.a[j]);
        }

        found.require(page::COUNTS, after.counts_fit_gaps());
        let lines = Lines::new(before.last.0.as_ref(), action);
        found.require(page::COMPARED, lines.swap_what_was_compared());
        found.require(page::WALK, before.may_walk(action));
        found.require(page::IN_PLACE, before.may_leave(action));

        if let (Action::Gap(_) | Action::Done, Some(gap)) = (*action, before.gaps.last()) {
            found.require(page::WHOLE_PASS, before.k.is_some_and(|k| k + 1 == after.a.len()));
            found.require(page::GAP_SORTED, before.is_sorted_by_gap(*gap));
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
            found.require(page::LAST_GAP, after.gaps.last() == Some(&1));
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Sorting for a gap keeps the order of all greater gaps (Knuth). So two elements can only
        // be out of order if their distance is not a sum of greater gaps: `ordered[d]` tells which
        // distances are. An element is swapped once with each that is out of order before it, and
        // compared once more at most.
        let n = input.a.len();
        let mut ordered = vec![false; n];
        ordered[0] = true;

        let mut steps = 1;
        let gaps: Vec<usize> = knuth_gaps(n).collect();

        for &gap in gaps.iter().rev() {
            steps += 1 + 2 * (n - gap) as u64;
            for distance in (gap..n).step_by(gap).filter(|distance| !ordered[*distance]) {
                steps += 2 * (n - distance) as u64;
            }
            // From now on this gap keeps further distances in order.
            for distance in gap..n {
                ordered[distance] |= ordered[distance - gap];
            }
        }

        steps
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
