//! Quick Sort with Lomuto's partition: the last element of a range is its pivot; smaller ones go
//! left.
//!
//! A step is one action line: `part lo hi`, `cmp j hi`, `swap i j` into the small part, `pivot p`
//! to its place, `done`.

use crate::tasks::pages::quick_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `quick-sort`.
pub struct QuickSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// First cell of the range last partitioned; none at the start.
    pub lo: Option<usize>,
    /// Last cell of that range, inclusive, which holds the pivot; none at the start.
    pub hi: Option<usize>,
    /// One before `lo` while the small part is empty: -1 is possible.
    pub i: Option<i64>,
    pivots: Vec<usize>,
    /// First and last place of each range.
    pub stack: Vec<(usize, usize)>,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `part lo hi`: takes the range `a[lo..=hi]` off the stack.
    Part(lo, hi) = "part",
    /// `cmp i j`: compares `a[i]` with `a[j]`, the pivot.
    Cmp(i, j) = "cmp",
    /// `swap i j`: moves `a[j]` into the small part, whose last cell becomes i.
    Swap(i, j) = "swap",
    /// `pivot p`: moves the pivot to its final cell p and pushes the ranges on its two sides.
    Pivot(p) = "pivot",
    /// Ends the trace.
    Done = "done",
});

/// The place before this one.
fn before(place: usize) -> i64 {
    signed(place) - 1
}

fn signed(place: usize) -> i64 {
    i64::try_from(place).expect("invariant: places of an array fit")
}

/// Depth of the nested partitions of a run over n cells that put its pivots at these places, in
/// this order.
fn depth(pivots: &[usize], n: usize) -> u32 {
    // Ranges still to be partitioned, each with its level. The left one goes first, as in the
    // algorithm.
    let mut ranges = vec![(0, n, 1)];
    let mut deepest = 0;

    for pivot in pivots {
        let Some((start, end, nested)) = ranges.pop() else { break };
        deepest = deepest.max(nested);
        ranges.extend(
            [(pivot + 1, end, nested + 1), (start, *pivot, nested + 1)]
                .iter()
                .filter(|r| r.1 - r.0 >= 2),
        );
    }

    deepest
}

impl State {
    /// Range and end of the small part, if they are those of a partition.
    fn partition(&self) -> Option<(usize, usize, i64)> {
        let (lo, hi, i) = (self.lo?, self.hi?, self.i?);
        (before(lo)..signed(hi)).contains(&i).then_some((lo, hi, i))
    }

    /// The next action after place j of the range.
    fn after_place(&self, j: usize) -> Option<Action> {
        let (lo, hi, i) = self.partition()?;
        if j < lo || j >= hi || i > signed(j) {
            None
        } else if j + 1 < hi {
            Some(Action::Cmp(j + 1, hi))
        } else {
            usize::try_from(i + 1).ok().map(Action::Pivot)
        }
    }

    fn next_range(&self) -> Action {
        self.stack.last().map_or(Action::Done, |(lo, hi)| Action::Part(*lo, *hi))
    }

    /// Returns whether nothing before a pivot is greater and nothing after it is less.
    fn pivots_are_in_place(&self) -> bool {
        // Running minima and maxima: two scans instead of one for each pivot.
        let mut least_after = self.a.clone();
        for place in (1..self.a.len()).rev() {
            least_after[place - 1] = least_after[place - 1].min(least_after[place]);
        }

        let mut greatest_before = self.a.clone();
        for place in 1..self.a.len() {
            greatest_before[place] = greatest_before[place].max(greatest_before[place - 1]);
        }

        self.pivots
            .iter()
            .all(|p| greatest_before[*p] <= self.a[*p] && self.a[*p] <= least_after[*p])
    }

    fn small_part_is_small(&self) -> bool {
        let (Some(lo), Some(hi)) = (self.lo, self.hi) else { return true };
        let Some((_, _, i)) = self.partition() else { return false };
        let end = usize::try_from(i + 1).unwrap_or(lo);
        self.a[lo..end].iter().all(|x| *x < self.a[hi])
    }

    /// The place that the last line of the partition compared or, having compared it, swapped.
    fn looked_at(&self) -> Option<usize> {
        match self.last.0 {
            Some(Action::Cmp(j, _) | Action::Swap(_, j)) => Some(j),
            _ => None,
        }
    }

    /// Returns whether j is the next place of the range to compare, and `end` the range's last
    /// place.
    fn may_compare(&self, j: usize, end: usize) -> bool {
        let next = match self.last.0 {
            Some(Action::Part(lo, _)) => Some(lo),
            _ => self.looked_at().map(|seen| seen + 1),
        };
        Some(end) == self.hi && j < end && Some(j) == next
    }

    /// Returns whether no element from the small part to place j is less than the pivot.
    fn large_part_is_large(&self, j: usize) -> bool {
        let (Some(i), Some(hi)) = (self.i, self.hi) else { return false };
        let cells = usize::try_from(i + 1).ok().and_then(|start| self.a.get(start..j));
        cells.is_some_and(|cells| cells.iter().all(|x| *x >= self.a[hi]))
    }

    fn may_swap(&self, i: usize, j: usize) -> bool {
        let less = self.hi.is_some_and(|hi| self.a.get(j) < self.a.get(hi));
        less && self.i.is_some_and(|end| signed(i) == end + 1)
    }

    fn stack_is_sound(&self) -> bool {
        let mut covered = vec![false; self.a.len()];
        for (lo, hi) in &self.stack {
            let Some(cells) = covered.get_mut(*lo..=*hi) else { return false };
            if cells.len() < 2 || cells.contains(&true) {
                return false;
            }
            cells.fill(true);
        }

        self.pivots.iter().all(|pivot| !covered[*pivot])
    }
}

impl Task for QuickSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::draw(&page::size::N, difficulty, rng, |input| {
            let n = input.a.len();
            let end = reference_end::<Self>(input, u64::MAX);
            // Adversarial inputs are rejected, as in the paper.
            end.is_some_and(|(state, _)| depth(&state.pivots, n) <= 3 * n.ilog2())
        })
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            lo: None,
            hi: None,
            i: None,
            pivots: Vec::new(),
            stack: vec![(0, input.a.len() - 1)],
            comparisons: 0,
            swaps: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        limits::below("lo", state.lo, n)?;
        limits::below("hi", state.hi, n)?;
        limits::below("pivots", state.pivots.iter().copied(), n)?;
        limits::below("stack", state.stack.iter().flat_map(|(lo, hi)| [*lo, *hi]), n)?;

        if let Some(Action::Part(i, j) | Action::Cmp(i, j) | Action::Swap(i, j)) = state.last.0 {
            limits::below("last", [i, j], n)?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Part(lo, hi) => {
                if state.stack.last() != Some(&(lo, hi)) {
                    return Err(Illegal("this range is not on top of the stack"));
                }

                state.stack.pop();
                state.lo = Some(lo);
                state.hi = Some(hi);
                state.i = Some(before(lo));
            }
            Action::Cmp(i, j) => {
                require_places(&state.a, i, j)?;
                state.comparisons += 1;
            }
            Action::Swap(i, j) => {
                require_places(&state.a, i, j)?;
                state.a.swap(i, j);
                state.swaps += 1;
                state.i = Some(signed(i));
            }
            Action::Pivot(p) => {
                require_places(&state.a, p, p)?;
                let (Some(lo), Some(hi)) = (state.lo, state.hi) else {
                    return Err(Illegal("no range is being partitioned"));
                };

                state.a.swap(p, hi);
                state.swaps += 1;
                state.pivots.push(p);

                // A side of a single cell is in order. The left range is pushed last, so that it
                // goes first.
                if hi > p + 1 {
                    state.stack.push((p + 1, hi));
                }
                if p > lo + 1 {
                    state.stack.push((lo, p - 1));
                }
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            None | Some(Action::Pivot(_)) => Some(state.next_range()),
            Some(Action::Part(lo, hi)) => Some(Action::Cmp(lo, hi)),
            Some(Action::Cmp(j, end)) => {
                let no_less = state.after_place(j)?;
                let (_, hi, i) = state.partition()?;
                if end != hi || i == signed(j) {
                    None
                } else if state.a[j] < state.a[hi] {
                    Some(Action::Swap(usize::try_from(i + 1).ok()?, j))
                } else {
                    Some(no_less)
                }
            }
            Some(Action::Swap(_, j)) => state.after_place(j),
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
        // Only these two move values.
        if let Action::Swap(i, j) = *action {
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, i, j));
        }
        if let (Action::Pivot(p), Some(hi)) = (*action, after.hi) {
            found.require(page::PERMUTATION, array::is_exchange(&before.a, &after.a, p, hi));
        }

        found.require(page::PIVOTS, after.pivots_are_in_place());
        found.require(page::SMALL, after.small_part_is_small());
        found.require(page::STACK, after.stack_is_sound());

        let few_swaps = after.swaps <= after.comparisons.saturating_add(after.pivots.len() as u64);
        let few_comparisons =
            after.comparisons <= input.pairs() && after.pivots.len() < after.a.len();
        found.require(page::COUNTS, few_swaps && few_comparisons);

        let after_pivot = matches!(before.last.0, Some(Action::Pivot(_)));
        match *action {
            Action::Part(..) => found.require(page::ORDER, before.last.0.is_none() || after_pivot),
            Action::Cmp(j, end) => {
                found.require(page::SCAN, before.may_compare(j, end));
                found.require(page::LARGE, before.large_part_is_large(j));
            }
            Action::Swap(i, j) => {
                let compared =
                    before.hi.is_some_and(|hi| before.last.0 == Some(Action::Cmp(j, hi)));
                found.require(page::COMPARED, compared);
                found.require(page::SWAP_ORDER, before.may_swap(i, j));
            }
            Action::Pivot(p) => {
                found.require(page::PIVOT_PLACE, before.i.is_some_and(|i| signed(p) == i + 1));
                let over = before.looked_at().zip(before.hi).is_some_and(|(j, hi)| j + 1 == hi);
                found.require(page::WHOLE_SCAN, over);
            }
            Action::Done => found.require(page::ORDER, after_pivot && before.stack.is_empty()),
        }

        if *action == Action::Done {
            found.require(page::SORTED, after.a.is_sorted());
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Each pair is compared once at most and each comparison followed by one swap at most; a
        // partition settles its pivot, and the last cell needs none: n-1 partitions.
        2 * input.pairs() + 2 * (input.len() - 1) + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "pivots": state.pivots,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
