//! Invariants after every line of Introsort.

use super::{Action, LEAF, State};
use crate::tasks::advanced_sorting::moves;
use crate::tasks::pages::introsort as page;
use crate::tasks::violations::Violations;

fn are_disjoint(mut ranges: Vec<(usize, usize)>) -> bool {
    ranges.sort_unstable();
    ranges.is_sorted_by(|(_, end), (start, _)| end <= start)
}

impl State {
    /// Returns whether each pivot bounds the values on both sides of it. Comparing every cell with
    /// the pivots next to it is enough.
    fn pivots_hold(&self) -> bool {
        let bounded = |values: &[i64], least: i64, greatest: i64| {
            values.iter().all(|x| (least..=greatest).contains(x))
        };
        let (mut start, mut least) = (0, i64::MIN);

        for p in &self.pivots_sorted {
            // A place that was named twice makes this range reversed, which `part` reads as empty.
            if !bounded(moves::part(&self.a, start..*p), least, self.a[*p]) || self.a[*p] < least {
                return false;
            }
            (start, least) = (p + 1, self.a[*p]);
        }

        bounded(&self.a[start..], least, i64::MAX)
    }

    fn stack_holds(&self) -> bool {
        let ranges = self.stack.iter().map(|(lo, hi, _)| (*lo, *hi)).collect();
        self.stack.iter().all(|(lo, hi, depth)| {
            // No pivot lies in a range that is still to be sorted.
            let next = self.pivots_sorted.partition_point(|p| p < lo);
            let free = self.pivots_sorted.get(next).is_none_or(|p| p >= hi);
            lo + 2 <= *hi && free && (0..=self.depth_limit).contains(depth)
        }) && are_disjoint(ranges)
    }

    fn heaps_hold(&self) -> bool {
        self.heaps.iter().all(|[lo, hi]| hi - lo > LEAF)
            && are_disjoint(self.heaps.iter().map(|[lo, hi]| (*lo, *hi)).collect())
    }

    /// The cells of the range that has been taken up.
    fn range(&self) -> &[i64] {
        match (self.lo, self.hi) {
            (Some(lo), Some(hi)) => moves::part(&self.a, lo..hi),
            _ => &[],
        }
    }

    /// The cells of the heap.
    fn heap(&self) -> &[i64] {
        self.range().get(..self.size.unwrap_or(0)).unwrap_or_default()
    }

    /// Returns whether the last line completed the range that was taken up, if there was one.
    fn has_completed_range(&self) -> bool {
        let range = self.range();
        match self.last.0 {
            None | Some(Action::Pivot(_)) => true,
            Some(Action::Insert(k, _)) => self.hi == Some(k + 1) && range.is_sorted(),
            Some(Action::Sift(0, _)) => self.size == Some(1) && range.is_sorted(),
            _ => false,
        }
    }

    /// Returns whether size and depth of the range call for this way of sorting it.
    fn suits(&self, action: Action) -> bool {
        let cells = self.range().len();
        match action {
            Action::Leaf(..) => cells <= LEAF,
            Action::Heap(..) => cells > LEAF && self.depth == Some(0),
            _ => cells > LEAF && self.depth.is_some_and(|depth| depth > 0),
        }
    }

    /// Returns whether `m` is the first, the middle or the last place of the range, and in order of
    /// (value, place) one of these lies on either side of it.
    fn is_median(&self, m: usize) -> bool {
        let (Some(lo), Some(hi)) = (self.lo, self.hi) else { return false };
        let places = [lo, lo + (hi - lo) / 2, hi - 1];
        let key = |place: usize| (self.a[place], place);
        let lies_between =
            |m| places.iter().any(|p| key(*p) < key(m)) && places.iter().any(|p| key(*p) > key(m));
        places.contains(&m) && lies_between(m)
    }

    /// The cell that a partition looks at next, after lines that compare one or exchange it.
    fn next_compared(&self) -> Option<usize> {
        match self.last.0? {
            Action::Median(_) => self.lo,
            // A comparison with another cell than the pivot.
            Action::Cmp(_, j) if Some(j + 1) != self.hi => None,
            Action::Cmp(j, _) | Action::Swap(_, j) => Some(j + 1),
            _ => None,
        }
    }

    /// Returns whether cells lo..i-1 are less than the pivot at hi-1 and cells i..j-1 are not.
    fn is_partitioned_up_to(&self, j: usize) -> bool {
        let (Some(lo), Some(hi), Some(i)) = (self.lo, self.hi, self.i) else { return false };
        let pivot = self.a[hi - 1];

        let (less, others) = (moves::part(&self.a, lo..i), moves::part(&self.a, i..j));
        (lo..=j).contains(&i)
            && less.iter().all(|x| *x < pivot)
            && others.iter().all(|x| *x >= pivot)
    }

    /// Returns whether a sift of this node comes next: nodes fall while the heap is built, and each
    /// `pop` is followed by the root.
    fn is_sift_next(&self, node: usize) -> bool {
        match self.last.0 {
            Some(Action::Heap(lo, hi)) => node + 1 == (hi - lo) / 2,
            Some(Action::Sift(above, _)) => {
                above == node + 1 && self.heap().len() == self.range().len()
            }
            Some(Action::Pop(_)) => node == 0,
            _ => false,
        }
    }

    /// Returns whether no node from `first` on has a greater child.
    fn is_heap_from(&self, first: usize) -> bool {
        let heap = self.heap();
        (first.saturating_mul(2) + 1..heap.len()).all(|child| heap[(child - 1) / 2] >= heap[child])
    }

    /// Returns whether the element sifted from `i` to `d` passed only greater ones, each the
    /// greater of two siblings, the left one of equals.
    fn is_sift_path(&self, i: usize, d: usize) -> bool {
        let heap = self.heap();
        if i >= heap.len() || d >= heap.len() {
            return false;
        }

        let mut node = d;
        while node > i {
            // After the sift, the element that came up from `node` is at its parent.
            let parent = (node - 1) / 2;
            let is_left = node % 2 == 1;
            let sibling = heap.get(if is_left { node + 1 } else { node - 1 });

            let greater = sibling.is_none_or(|sibling| {
                heap[parent] > *sibling || is_left && heap[parent] == *sibling
            });

            if !greater || heap[parent] <= heap[d] {
                return false;
            }

            node = parent;
        }
        true
    }

    /// Returns whether the cells after the heap are in order and nothing in the heap exceeds them.
    fn is_heap_tail_final(&self) -> bool {
        let heap = self.heap();
        let tail = &self.range()[heap.len()..];
        tail.is_sorted() && tail.first().is_none_or(|least| heap.iter().all(|x| x <= least))
    }
}

fn check_ranges(before: &State, action: Action, after: &State, found: &mut Violations) {
    match action {
        Action::Leaf(..) | Action::Heap(..) | Action::Part(..) => {
            found.require(page::COMPLETED, before.has_completed_range());
            found.require(page::RANGE_SIZE, after.suits(action));
        }
        Action::Done => {
            found.require(page::COMPLETED, before.has_completed_range());
            found.require(page::NO_RANGE_LEFT, after.stack.is_empty());
        }
        Action::Insert(k, p) => {
            let next = match before.last.0 {
                Some(Action::Leaf(lo, _)) => Some(lo + 1),
                Some(Action::Insert(last, _)) => Some(last + 1),
                _ => None,
            };

            let due =
                next == Some(k) && after.hi.is_some_and(|hi| k < hi) && after.range().len() <= LEAF;
            let stable = after.lo.is_some_and(|lo| moves::is_stable_insertion(&after.a, lo, k, p));
            found.require(page::INSERTED, due && stable);
        }
        _ => {}
    }
}

fn check_heap(before: &State, action: Action, after: &State, found: &mut Violations) {
    match action {
        Action::Sift(i, d) => {
            found.require(page::SIFT_ORDER, before.is_sift_next(i));
            found.require(page::HEAP_ORDER, after.is_heap_from(i));
            found.require(page::SIFT_PATH, after.is_sift_path(i, d));
        }
        Action::Pop(e) => {
            let sifted = matches!(before.last.0, Some(Action::Sift(0, _)));
            found.require(page::POP_ORDER, sifted && e > 0 && before.size == Some(e + 1));
            found.require(page::HEAP_TAIL, after.is_heap_tail_final());
        }
        _ => {}
    }
}

fn check_partition(before: &State, action: Action, after: &State, found: &mut Violations) {
    match action {
        Action::Median(m) => {
            let begun = matches!(before.last.0, Some(Action::Part(..)));
            found.require(page::MEDIAN, begun && before.is_median(m));
        }
        Action::Cmp(j, right) => {
            let inside = after.hi == Some(right + 1) && j < right;
            found.require(page::SCAN_ORDER, inside && before.next_compared() == Some(j));
            found.require(page::PARTITION, after.is_partitioned_up_to(j));
        }
        Action::Swap(i, j) => {
            let compared = matches!(before.last.0, Some(Action::Cmp(last, _)) if last == j);
            let less = after.hi.is_some_and(|hi| after.a[i] < after.a[hi - 1]);
            found.require(page::SWAP_ORDER, compared && less && before.i == Some(i) && i <= j);
        }
        Action::Pivot(p) => {
            let scanned = before.next_compared().map(|next| next + 1);
            found.require(page::SCAN_ORDER, scanned.is_some() && scanned == before.hi);
            let partitioned = before.hi.is_some_and(|hi| before.is_partitioned_up_to(hi - 1));
            found.require(page::PARTITION, partitioned && before.i == Some(p));
        }
        _ => {}
    }
}

/// Notes the invariants that an action breaks.
pub fn check(before: &State, action: Action, after: &State, found: &mut Violations) {
    found.require(page::PERMUTATION, moves::keeps_values(&before.a, &after.a));
    found.require(page::PIVOTS, after.pivots_hold());
    found.require(page::STACK, after.stack_holds());
    found.require(page::HEAPS, after.heaps_hold());
    found.require(page::COUNTS, after.swaps <= after.comparisons);

    check_ranges(before, action, after, found);
    check_heap(before, action, after, found);
    check_partition(before, action, after, found);

    if action == Action::Done {
        found.require(page::SORTED, after.a.is_sorted());
    }
}
