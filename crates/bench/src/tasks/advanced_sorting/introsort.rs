//! Introsort: quicksort by a median of three; short ranges go to insertion sort, ranges at the
//! depth limit to heapsort.
//!
//! A step is one action line: a range taken up, a median, comparison, exchange or pivot of a
//! partition, an insertion, a sift or pop of a heap, `done`.

mod invariants;

use super::moves;
use crate::tasks::pages::introsort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `introsort`.
pub struct Introsort;

/// Ranges of at most this many cells go to insertion sort.
const LEAF: usize = 16;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The array in its present order.
    pub a: Vec<i64>,
    /// First cell of the range in work; none at the start.
    pub lo: Option<usize>,
    /// End of that range, exclusive; none at the start.
    pub hi: Option<usize>,
    depth: Option<i64>,
    /// End of the small part of the partition, exclusive; none before the first `part`.
    pub i: Option<usize>,
    /// Number of cells in the heap; none before the first `heap`.
    pub size: Option<usize>,
    pivots: Vec<usize>,
    heaps: Vec<[usize; 2]>,
    depth_limit: i64,
    /// Start, end (exclusive) and depth left.
    pub stack: Vec<(usize, usize, i64)>,
    leaves: u64,
    comparisons: u64,
    swaps: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// `pivots` in ascending order.
    #[serde(skip)]
    pivots_sorted: Vec<usize>,
}

word_actions!(Action {
    /// `leaf lo hi`: takes a range off the stack for insertion sort.
    Leaf(lo, hi) = "leaf",
    /// `insert k p`: moves `a[k]` to cell p, at or before k, and those between one up.
    Insert(k, p) = "insert",
    /// `heap lo hi`: takes a range off the stack for heapsort.
    Heap(lo, hi) = "heap",
    /// `sift i d`: moves the element of heap node i down to node d, both relative to `lo`.
    Sift(i, d) = "sift",
    /// `pop e`: exchanges the heap's root with its node e and shrinks the heap to e cells.
    Pop(e) = "pop",
    /// `part lo hi`: takes a range off the stack for a partition.
    Part(lo, hi) = "part",
    /// `median m`: makes `a[m]` the pivot by exchanging it with the range's last cell.
    Median(m) = "median",
    /// `cmp i j`: compares `a[i]` with `a[j]`, the pivot.
    Cmp(i, j) = "cmp",
    /// `swap i j`: moves `a[j]` into the small part, which then ends after i.
    Swap(i, j) = "swap",
    /// `pivot p`: moves the pivot to its final cell p and pushes the ranges on its two sides.
    Pivot(p) = "pivot",
    /// Ends the trace.
    Done = "done",
});

const NO_PLACE: Illegal = Illegal("there is no such place in the array");
const NO_RANGE: Illegal = Illegal("no range has been taken up");
const NO_HEAP: Illegal = Illegal("there is no such node in a heap");

fn depth_limit(n: usize) -> i64 {
    2 * i64::from(n.ilog2())
}

/// The node where the element of node `i` ends in this max-heap.
fn sift_end(heap: &[i64], i: usize) -> usize {
    let element = heap[i];
    let mut node = i;

    loop {
        let left = 2 * node + 1;
        let Some(value) = heap.get(left) else { return node };
        // If the children are equal, the left one rises.
        let child =
            if heap.get(left + 1).is_some_and(|right| right > value) { left + 1 } else { left };

        if heap[child] <= element {
            return node;
        }
        node = child;
    }
}

impl State {
    /// Pops the range that the line names off the stack.
    fn take_up(&mut self, lo: usize, hi: usize) -> Result<(), Illegal> {
        match self.stack.last() {
            Some((start, end, depth)) if (*start, *end) == (lo, hi) => {
                (self.lo, self.hi, self.depth) = (Some(lo), Some(hi), Some(*depth));
                self.stack.pop();
                Ok(())
            }
            _ => Err(Illegal("this range is not on top of the stack")),
        }
    }

    /// Moves the element of node `i` to its descendant `d`.
    fn sift(&mut self, i: usize, d: usize) -> Result<(), Illegal> {
        let (lo, size) = (self.lo.ok_or(NO_RANGE)?, self.size.ok_or(NO_HEAP)?);
        let parent = |node: usize| (node - 1) / 2;

        // `d` must lie below `i`: its ancestors lead there.
        let mut node = d;
        while node > i {
            node = parent(node);
        }

        // After a wrong line the heap's size may belong to another range.
        let exists = i < size && d < size && d < self.a.len() - lo;
        if !exists || node != i {
            return Err(NO_HEAP);
        }

        // The element of `i` moves to `d`, and every element on the path to its parent.
        let mut carried = self.a[lo + i];
        let mut node = d;
        std::mem::swap(&mut self.a[lo + node], &mut carried);
        while node > i {
            node = parent(node);
            std::mem::swap(&mut self.a[lo + node], &mut carried);
        }

        Ok(())
    }

    fn pivot(&mut self, p: usize) -> Result<(), Illegal> {
        let (Some(lo), Some(hi), Some(depth)) = (self.lo, self.hi, self.depth) else {
            return Err(NO_RANGE);
        };

        if p >= self.a.len() {
            return Err(NO_PLACE);
        }

        self.a.swap(p, hi - 1);
        self.pivots.push(p);
        self.pivots_sorted.insert(self.pivots_sorted.partition_point(|place| *place < p), p);

        // The left range is pushed last and so sorted first; one of a single cell is sorted
        // already.
        for (start, end) in [(p + 1, hi), (lo, p)] {
            if start + 2 <= end {
                self.stack.push((start, end, depth - 1));
            }
        }

        Ok(())
    }

    fn next_range(&self) -> Action {
        match self.stack.last() {
            None => Action::Done,
            Some((lo, hi, _)) if hi - lo <= LEAF => Action::Leaf(*lo, *hi),
            Some((lo, hi, 0)) => Action::Heap(*lo, *hi),
            Some((lo, hi, _)) => Action::Part(*lo, *hi),
        }
    }

    /// The line of a partition after place `j - 1`: a comparison, or the pivot at the end.
    fn compare_or_end(&self, j: usize, hi: usize) -> Option<Action> {
        if j + 1 < hi {
            return Some(Action::Cmp(j, hi - 1));
        }
        self.i.filter(|i| *i < hi).map(Action::Pivot)
    }

    /// The sift of node `i` in the heap at `lo`.
    fn sift_of(&self, lo: usize, i: usize) -> Option<Action> {
        let heap = self.a.get(lo..lo + self.size?)?;
        (i < heap.len()).then(|| Action::Sift(i, sift_end(heap, i)))
    }
}

impl Task for Introsort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::unsorted(|| {
            let n = page::size::N.draw(difficulty, rng);
            if rng.chance(1, 2) {
                return array::uniform(n, -1000, 1000, rng);
            }

            // Few values: distinct ones hardly ever bring a partition to the depth limit.
            let values = array::uniform(8, -1000, 1000, rng);
            (0..n).map(|_| rng.one_of(&values)).collect()
        })
    }

    fn start(input: &Input) -> State {
        let n = input.a.len();
        State {
            a: input.a.clone(),
            lo: None,
            hi: None,
            depth: None,
            i: None,
            size: None,
            pivots: Vec::new(),
            heaps: Vec::new(),
            depth_limit: depth_limit(n),
            stack: vec![(0, n, depth_limit(n))],
            leaves: 0,
            comparisons: 0,
            swaps: 0,
            last: Last(None),
            pivots_sorted: Vec::new(),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let n = input.a.len();
        let is_range = |lo: usize, hi: usize| hi <= n && lo.saturating_add(2) <= hi;
        let wrong = |field| InvalidInput {
            field,
            reason: format!("must be ranges of two cells or more, up to {n}"),
        };

        let taken_up = match (state.lo, state.hi, state.depth) {
            (Some(lo), Some(hi), Some(_)) => is_range(lo, hi),
            (lo, hi, depth) => lo.is_none() && hi.is_none() && depth.is_none(),
        };
        InvalidInput::unless(
            taken_up,
            "lo",
            format!("and `hi` and `depth` must be a range of two cells or more, up to {n}"),
        )?;

        limits::below("pivots", state.pivots.iter().copied(), n)?;
        if !state.heaps.iter().all(|[lo, hi]| is_range(*lo, *hi)) {
            return Err(wrong("heaps"));
        }
        if !state.stack.iter().all(|(lo, hi, _)| is_range(*lo, *hi)) {
            return Err(wrong("stack"));
        }

        if let Some(Action::Leaf(lo, hi) | Action::Heap(lo, hi) | Action::Part(lo, hi)) =
            state.last.0
        {
            let range = (state.lo, state.hi) == (Some(lo), Some(hi));
            InvalidInput::unless(range, "last", "must take up the range from `lo` to `hi`")?;
        }

        array::check("a", &state.a, &input.a)
    }

    fn complete(_: &Input, state: &mut State) {
        state.pivots_sorted.clone_from(&state.pivots);
        state.pivots_sorted.sort_unstable();
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let n = state.a.len();
        match *action {
            Action::Leaf(lo, hi) => {
                state.take_up(lo, hi)?;
                state.leaves += 1;
            }
            Action::Insert(k, p) => moves::insert(&mut state.a, k, p)?,
            Action::Heap(lo, hi) => {
                state.take_up(lo, hi)?;
                state.heaps.push([lo, hi]);
                state.size = Some(hi - lo);
            }
            Action::Sift(i, d) => state.sift(i, d)?,
            Action::Pop(e) => {
                let (lo, size) = (state.lo.ok_or(NO_RANGE)?, state.size.ok_or(NO_HEAP)?);
                if e >= size || e >= n - lo {
                    return Err(NO_HEAP);
                }

                state.a.swap(lo, lo + e);
                state.size = Some(e);
            }
            Action::Part(lo, hi) => {
                state.take_up(lo, hi)?;
                state.i = Some(lo);
            }
            Action::Median(m) => {
                let hi = state.hi.ok_or(NO_RANGE)?;
                if m >= n {
                    return Err(NO_PLACE);
                }
                state.a.swap(m, hi - 1);
            }
            Action::Cmp(i, j) | Action::Swap(i, j) if i >= n || j >= n => return Err(NO_PLACE),
            Action::Cmp(..) => state.comparisons += 1,
            Action::Swap(i, j) => {
                state.a.swap(i, j);
                state.swaps += 1;
                state.i = Some(i + 1);
            }
            Action::Pivot(p) => state.pivot(p)?,
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        let a = &state.a;
        let Some(last) = state.last.0 else { return Some(state.next_range()) };
        let insertion = |k: usize, lo: usize| Action::Insert(k, moves::insertion_place(a, lo, k));

        match last {
            Action::Leaf(lo, _) => return Some(insertion(lo + 1, lo)),
            Action::Heap(lo, hi) => return state.sift_of(lo, (hi - lo) / 2 - 1),
            Action::Pivot(_) => return Some(state.next_range()),
            Action::Done => return None,
            _ => {}
        }

        let (lo, hi) = (state.lo?, state.hi?);
        // The size may be that of an earlier heap, in another range.
        let size =
            state.size.filter(|size| state.heaps.last() == Some(&[lo, hi]) && *size <= hi - lo);

        match last {
            Action::Insert(k, _) if hi - lo <= LEAF && lo < k && k < hi => {
                Some(if k + 1 < hi { insertion(k + 1, lo) } else { state.next_range() })
            }
            // The heap has its full size while it is built.
            Action::Sift(i, _) if i > 0 && size? == hi - lo => state.sift_of(lo, i - 1),
            Action::Sift(0, _) => {
                Some(if size? > 1 { Action::Pop(size? - 1) } else { state.next_range() })
            }
            Action::Pop(_) => size.and_then(|_| state.sift_of(lo, 0)),
            Action::Part(..) => {
                let mut places = [lo, lo + (hi - lo) / 2, hi - 1];
                places.sort_unstable_by_key(|place| (a[*place], *place));
                Some(Action::Median(places[1]))
            }
            Action::Median(_) => state.compare_or_end(lo, hi),
            Action::Cmp(j, right) if right == hi - 1 && (lo..right).contains(&j) => match state.i {
                Some(i) if a[j] < a[right] => (i <= j).then_some(Action::Swap(i, j)),
                _ => state.compare_or_end(j + 1, hi),
            },
            Action::Swap(_, j) if (lo..hi - 1).contains(&j) => state.compare_or_end(j + 1, hi),
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
        invariants::check(before, *action, after, found);
    }

    fn steps_max(input: &Input) -> u64 {
        // A partition of z > 16 cells takes at most 2z + 1 lines, and the ranges of one depth are
        // disjoint. At the end a heap takes less than 2.5z + 1 lines and a leaf z.
        let n = input.a.len() as u64;
        u64::from(n.ilog2()) * 2 * (2 * n + n / 17) + 3 * n + 1
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({
            "sorted": state.a,
            "depth_limit": state.depth_limit,
            "pivots": state.pivots,
            "heaps": state.heaps,
            "leaves": state.leaves,
            "comparisons": state.comparisons,
            "swaps": state.swaps,
        })
    }
}
