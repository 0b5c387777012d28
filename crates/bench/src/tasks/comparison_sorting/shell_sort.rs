//! Shell Sort with Knuth's gaps: insertion sort of the elements that lie a gap apart, for smaller and smaller gaps.
//!
//! A step is one action line: `gap h`, `take k`, `cmp k-h k`, `swap k-h k`, `done`.

use crate::tasks::pages::shell_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

pub struct ShellSort;

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    a: Vec<i64>,
    gaps: Vec<usize>,
    k: Option<usize>,
    comparisons: Vec<u64>,
    swaps: Vec<u64>,
    last: Last<Action>,
}

word_actions!(Action { Gap(h) = "gap", Take(k) = "take", Cmp(i, j) = "cmp", Swap(i, j) = "swap", Done = "done" });

const NO_GAP: Illegal = Illegal("no gap has been begun");

/// Knuth's gaps 1, 4, 13, ... below n, least first.
fn knuth_gaps(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |gap| Some(3 * gap + 1)).take_while(move |gap| *gap < n)
}

fn greatest_gap_below(n: usize) -> Option<usize> {
    knuth_gaps(n).last()
}

/// The gaps begun are Knuth's from the greatest below n on.
fn are_first_gaps(gaps: &[usize], n: usize) -> bool {
    let thirds = gaps.windows(2).all(|pair| pair[1] > 0 && pair[0] == 3 * pair[1] + 1);
    gaps.first().copied() == greatest_gap_below(n) && thirds
}

impl State {
    /// What follows when the element taken last is in its place.
    fn after_take(&self, gap: usize) -> Option<Action> {
        let next = self.k? + 1;
        Some(if next < self.a.len() {
            Action::Take(next)
        } else if gap > 1 {
            Action::Gap(gap / 3)
        } else {
            Action::Done
        })
    }
}

impl Task for ShellSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        let a = input.a.clone();
        State { a, gaps: Vec::new(), k: None, comparisons: Vec::new(), swaps: Vec::new(), last: Last(None) }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::below("k", state.k, n)?;
        limits::length("comparisons", state.comparisons.len(), state.gaps.len())?;
        limits::length("swaps", state.swaps.len(), state.gaps.len())?;
        match state.last.0 {
            Some(Action::Gap(h)) => {
                InvalidInput::unless(state.gaps.last() == Some(&h), "last", "must begin the last of `gaps`")?;
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
        if !are_first_gaps(&state.gaps, n) {
            return None;
        }
        // Whether j is where the element taken last may be now.
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

    fn violations(input: &Input, before: &State, action: &Action, after: &State, found: &mut Violations) {
        let known = after.gaps.iter().all(|gap| knuth_gaps(input.a.len()).any(|knuth| knuth == *gap));
        found.require(page::GAPS, known && after.gaps.is_sorted_by(|a, b| a > b));
        if let Action::Cmp(i, j) | Action::Swap(i, j) = *action {
            found.require(page::STRIDE, after.gaps.last().is_some_and(|gap| i.checked_add(*gap) == Some(j)));
        }
        if let Action::Swap(i, j) = *action {
            // Only swaps move values.
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, i, j));
            found.require(page::SWAP_ORDER, after.a[i] < after.a[j]);
        }
        let one_for_each = after.comparisons.len() == after.gaps.len() && after.swaps.len() == after.gaps.len();
        let fewer_swaps = after.swaps.iter().zip(&after.comparisons).all(|(swaps, comparisons)| swaps <= comparisons);
        found.require(page::COUNTS, one_for_each && fewer_swaps);
        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Sorting for a gap keeps the order of all greater gaps (Knuth). So two elements can only be out of order if
        // their distance is not a sum of greater gaps: `ordered[d]` tells which distances are. An element is swapped once
        // with each that is out of order before it, and compared once more at most.
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
            for distance in gap..n {
                ordered[distance] |= ordered[distance - gap];
            }
        }
        steps
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a, "gaps": state.gaps, "comparisons": state.comparisons, "swaps": state.swaps,
        })
    }
}
