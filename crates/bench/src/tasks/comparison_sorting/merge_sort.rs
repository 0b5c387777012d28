//! Merge Sort: sort both halves of a range, then merge them through a buffer; equal elements of the
//! left half go first.
//!
//! A step is one action line: `split lo hi`, `merge lo hi`, `cmp i j`, `take x`, `write` of a
//! merged range, `done`.

use std::ops::Range;

use crate::tasks::pages::merge_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, require_places, sort_items};

/// The task `merge-sort`.
pub struct MergeSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array; a merge changes it only with its `write`.
    pub a: Vec<i64>,
    /// First cell of the range last split or merged; none at the start.
    pub lo: Option<usize>,
    /// First cell of its right half; none at the start.
    pub mid: Option<usize>,
    /// End of the range, exclusive; none at the start.
    pub hi: Option<usize>,
    /// Next cell of the left half to take, `mid` when it is used up; none at the start.
    pub i: Option<usize>,
    /// Next cell of the right half to take, `hi` when it is used up; none at the start.
    pub j: Option<usize>,
    buf: Vec<i64>,
    merges: Vec<u64>,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// True if `a` is a permutation of the input. Only a write moves values.
    #[serde(skip)]
    is_permutation: bool,
}

word_actions!(Action {
    /// `split lo hi`: begins to sort `a[lo..hi)`.
    Split(lo, hi) = "split",
    /// `merge lo hi`: begins to merge the sorted halves of `a[lo..hi)`.
    Merge(lo, hi) = "merge",
    /// `cmp i j`: compares `a[i]` with `a[j]`.
    Cmp(i, j) = "cmp",
    /// `take x`: appends `a[x]` to the buffer.
    Take(x) = "take",
    /// Writes the buffer back over the range and empties it.
    Write = "write",
    /// Ends the trace.
    Done = "done",
});

const NO_RANGE: Illegal = Illegal("no range has been split or merged");

/// The range that is split or merged, and the progress of the merge.
#[derive(Clone, Copy)]
struct Span {
    lo: usize,
    mid: usize,
    hi: usize,
    i: usize,
    j: usize,
}

impl Span {
    fn is_ordered(&self, n: usize) -> bool {
        [self.lo, self.i, self.mid, self.j, self.hi, n].is_sorted()
    }

    /// The length that the merge's buffer should have.
    fn taken(&self) -> Option<usize> {
        (self.i + self.j).checked_sub(self.lo + self.mid)
    }
}

fn halves(lo: usize, hi: usize) -> (Range<usize>, Range<usize>) {
    let mid = usize::midpoint(lo, hi);
    (lo..mid, mid..hi)
}

/// The range of which `part` is a half, in the recursion over n cells; `None` for the whole and for
/// other ranges.
fn parent(part: &Range<usize>, n: usize) -> Option<Range<usize>> {
    let mut range = 0..n;
    while range.len() >= 2 {
        let (left, right) = halves(range.start, range.end);
        if left == *part || right == *part {
            return Some(range);
        }
        range = if part.start < left.end { left } else { right };
    }
    None
}

/// The action that begins to sort a range of the recursion; `None` for a single cell.
fn sorting(range: &Range<usize>) -> Option<Action> {
    (range.len() >= 2).then_some(Action::Split(range.start, range.end))
}

/// The next action when this range of the recursion has been split.
fn after_split(range: &Range<usize>) -> Action {
    let (left, right) = halves(range.start, range.end);
    sorting(&left).or_else(|| sorting(&right)).unwrap_or(Action::Merge(range.start, range.end))
}

/// The next action when this range is sorted; `None` if the recursion does not write it.
fn after_write(range: &Range<usize>, n: usize) -> Option<Action> {
    if range.len() < 2 {
        return None;
    }
    if *range == (0..n) {
        return Some(Action::Done);
    }

    let whole = parent(range, n)?;
    let (_, right) = halves(whole.start, whole.end);
    // After the left half comes the right one, unless it is a single cell.
    let other = if right == *range { None } else { sorting(&right) };
    Some(other.unwrap_or(Action::Merge(whole.start, whole.end)))
}

fn is_in_recursion(range: &Range<usize>, n: usize) -> bool {
    range.len() >= 2 && (*range == (0..n) || parent(range, n).is_some())
}

impl State {
    fn span(&self) -> Option<Span> {
        Some(Span { lo: self.lo?, mid: self.mid?, hi: self.hi?, i: self.i?, j: self.j? })
    }

    fn open(&mut self, lo: usize, hi: usize) {
        let mid = usize::midpoint(lo, hi);
        self.lo = Some(lo);
        self.mid = Some(mid);
        self.hi = Some(hi);
        self.i = Some(lo);
        self.j = Some(mid);
    }

    /// The current merge, if its range and buffer belong to a merge of the recursion.
    fn merging(&self) -> Option<Span> {
        let n = self.a.len();
        let span = self
            .span()
            .filter(|span| span.is_ordered(n) && span.taken() == Some(self.buf.len()))?;
        (!self.merges.is_empty() && is_in_recursion(&(span.lo..span.hi), n)).then_some(span)
    }

    /// The cells of the range that exist.
    fn cells(&self, start: usize, end: usize) -> &[i64] {
        self.a.get(start..end.min(self.a.len())).unwrap_or_default()
    }
}

/// Returns whether repeated halving of the array of n cells leads to this range of two cells or
/// more.
fn is_found_by_halving(lo: usize, hi: usize, n: usize) -> bool {
    let (mut start, mut end) = (0, n);
    while end - start >= 2 {
        if (start, end) == (lo, hi) {
            return true;
        }
        let mid = usize::midpoint(start, end);
        (start, end) = if lo < mid { (start, mid) } else { (mid, end) };
    }
    false
}

impl State {
    /// The range of the last `split`, `merge` or `write`.
    fn range(&self) -> Option<(usize, usize)> {
        Some((self.lo?, self.hi?))
    }

    /// Returns whether the range to split is the whole array, or the next half to sort: the first
    /// half, of two cells or more, of a range just split, or the right half after the left one.
    fn may_split(&self, lo: usize, hi: usize) -> bool {
        match (self.last.0, self.range()) {
            (None, _) => (lo, hi) == (0, self.a.len()),
            (Some(Action::Split(start, end)), _) => {
                let mid = usize::midpoint(start, end);
                let has_left = mid.saturating_sub(start) >= 2;
                (lo, hi) == if has_left { (start, mid) } else { (mid, end) }
            }
            (Some(Action::Write), Some((start, end))) => {
                let is_left_half = usize::midpoint(start, hi) == end
                    && is_found_by_halving(start, hi, self.a.len());
                lo == end && is_left_half
            }
            _ => false,
        }
    }

    /// Returns whether both halves of a range that is merged have been sorted.
    fn may_merge(&self, lo: usize, hi: usize) -> bool {
        match (self.last.0, self.range()) {
            (Some(Action::Split(start, end)), _) => {
                (lo, hi) == (start, end) && hi.checked_sub(lo) == Some(2)
            }
            (Some(Action::Write), Some((start, end))) => {
                hi == end && usize::midpoint(lo, hi) == start
            }
            _ => false,
        }
    }

    /// Returns whether i and j are the heads of both halves and have not been compared yet.
    fn may_compare(&self, i: usize, j: usize) -> bool {
        let moved = matches!(self.last.0, Some(Action::Merge(..) | Action::Take(_)));
        moved
            && self
                .span()
                .is_some_and(|span| (i, j) == (span.i, span.j) && i < span.mid && j < span.hi)
    }

    /// Returns whether the element at x is a head and, while both halves have one, the lesser of
    /// the two in a comparison just made.
    fn may_take(&self, x: usize) -> bool {
        let Some(Span { mid, hi, i, j, .. }) = self.span() else { return false };
        if i < mid && j < hi {
            let lesser = if x == i {
                self.a.get(i) <= self.a.get(j)
            } else {
                x == j && self.a.get(j) < self.a.get(i)
            };
            self.last.0 == Some(Action::Cmp(i, j)) && lesser
        } else {
            matches!(self.last.0, Some(Action::Take(_)))
                && ((x == i && i < mid) || (x == j && j < hi))
        }
    }
}

impl Task for MergeSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            a: input.a.clone(),
            lo: None,
            mid: None,
            hi: None,
            i: None,
            j: None,
            buf: Vec::new(),
            merges: Vec::new(),
            comparisons: 0,
            last: Last(None),
            is_permutation: true,
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        limits::counts("merges", state.merges.iter().copied())?;
        if let Some(Action::Merge(lo, hi)) = state.last.0 {
            let mid = usize::midpoint(lo, hi);
            let opened = state.span().is_some_and(|span| {
                [span.lo, span.mid, span.hi, span.i, span.j] == [lo, mid, hi, lo, mid]
            });
            InvalidInput::unless(opened, "last", "must begin the merge that `lo` to `j` tell of")?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn complete(input: &Input, state: &mut State) {
        state.is_permutation = array::is_permutation(&state.a, &input.a);
    }

    fn apply(input: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Split(lo, hi) => state.open(lo, hi),
            Action::Merge(lo, hi) => {
                state.open(lo, hi);
                state.merges.push(0);
            }
            Action::Cmp(i, j) => {
                require_places(&state.a, i, j)?;
                *state.merges.last_mut().ok_or(Illegal("no merge has been begun"))? += 1;
                state.comparisons += 1;
            }
            Action::Take(x) => {
                require_places(&state.a, x, x)?;
                let end = if x < state.mid.ok_or(NO_RANGE)? { &mut state.i } else { &mut state.j };
                *end = Some(x + 1);
                state.buf.push(state.a[x]);
            }
            Action::Write => {
                let Span { lo, hi, .. } = state.span().ok_or(NO_RANGE)?;
                let range = state
                    .a
                    .get_mut(lo..hi)
                    .ok_or(Illegal("the range does not lie in the array"))?;

                if range.len() != state.buf.len() {
                    return Err(Illegal("the buffer does not fill the range"));
                }

                range.copy_from_slice(&state.buf);
                state.buf.clear();
                state.is_permutation = array::is_permutation(&state.a, &input.a);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let n = state.a.len();
        match state.last.0 {
            None => Some(Action::Split(0, n)),
            Some(Action::Split(lo, hi)) => {
                is_in_recursion(&(lo..hi), n).then(|| after_split(&(lo..hi)))
            }
            Some(Action::Merge(..)) => state.merging().map(|span| Action::Cmp(span.i, span.j)),
            Some(Action::Cmp(i, j)) => {
                let span = state.merging()?;
                if i != span.i || j != span.j || i == span.mid || j == span.hi {
                    return None;
                }
                Some(Action::Take(if state.a[i] <= state.a[j] { i } else { j }))
            }
            Some(Action::Take(_)) => {
                let Span { mid, hi, i, j, .. } = state.merging()?;
                Some(match (i < mid, j < hi) {
                    (true, true) => Action::Cmp(i, j),
                    (true, false) => Action::Take(i),
                    (false, true) => Action::Take(j),
                    (false, false) => Action::Write,
                })
            }
            Some(Action::Write) => after_write(&(state.lo?..state.hi?), n),
            Some(Action::Done) => None,
        }
    }

    fn violations(
        _: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::PERMUTATION, after.is_permutation);

        let span = after.span();
        let length_fits = after.buf.is_empty()
            || span.and_then(|span| span.taken()).is_some_and(|taken| taken == after.buf.len());
        found.require(page::BUFFER, length_fits && after.buf.is_sorted());

        found.require(page::BOUNDS, span.is_none_or(|span| span.is_ordered(after.a.len())));
        found.require(page::COUNTS, after.comparisons == after.merges.iter().sum::<u64>());

        if let Action::Split(lo, hi) | Action::Merge(lo, hi) = *action {
            found.require(page::RECURSION, is_found_by_halving(lo, hi, after.a.len()));
        }

        match *action {
            Action::Split(lo, hi) => found.require(page::SPLIT_ORDER, before.may_split(lo, hi)),
            Action::Merge(lo, hi) => {
                let mid = usize::midpoint(lo, hi);
                let sorted = |start, end| after.cells(start, end).is_sorted();
                found.require(page::HALVES, sorted(lo, mid) && sorted(mid, hi));
                found.require(page::MERGE_ORDER, before.may_merge(lo, hi));
            }
            Action::Cmp(i, j) => found.require(page::HEADS, before.may_compare(i, j)),
            Action::Take(x) => found.require(page::LESSER, before.may_take(x)),
            Action::Write => {}
            Action::Done => {
                let whole = before.last.0 == Some(Action::Write)
                    && before.range() == Some((0, after.a.len()));
                found.require(page::WHOLE, whole);
                found.require(page::SORTED, after.a.is_sorted());
            }
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // n-1 ranges, each with split, merge and write; at most ceil(log2 n) levels of n takes
        // each; a merge has one comparison fewer than takes, or less.
        let n = input.len();
        let levels = u64::from(n.next_power_of_two().ilog2());
        2 * (n - 1) + 2 * n * levels + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({ "sorted": state.a, "merges": state.merges, "comparisons": state.comparisons })
    }
}
