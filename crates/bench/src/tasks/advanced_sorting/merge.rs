//! A merge of Timsort in progress.

use serde::{Deserialize, Serialize};

use super::moves;
use super::timsort::Action;
use crate::tasks::task::Illegal;

/// Wins in a row after which a merge gallops.
const GALLOP: u64 = 7;

/// A merge in progress of a[lo..mid) and a[mid..hi).
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Place of the left run on the stack, from 0; the right one is next.
    pub at: usize,
    lo: usize,
    /// End of the left run and start of the right one.
    pub mid: usize,
    /// End of the right run, exclusive.
    pub hi: usize,
    /// Next cell of the left run; `mid` when it is used up.
    pub i: usize,
    /// Next cell of the right run; `hi` when it is used up.
    pub j: usize,
    /// Comparisons in a row that the left run has won; 0 after a gallop.
    pub lw: u64,
    /// Comparisons in a row that the right run has won; 0 after a gallop.
    pub rw: u64,
    buf: Vec<i64>,
}

impl Merge {
    /// The merge of runs `at` and `at + 1` of the stack, which begin at `lo` and `mid`.
    pub fn new(at: usize, lo: usize, mid: usize, hi: usize) -> Self {
        Self { at, lo, mid, hi, i: lo, j: mid, lw: 0, rw: 0, buf: Vec::with_capacity(hi - lo) }
    }

    /// The step that the algorithm prescribes.
    pub fn step(&self, a: &[i64]) -> Action {
        // One run is used up; the rest of the other follows as it is.
        if self.i >= self.mid || self.j >= self.hi {
            return Action::Rest;
        }

        let (left, right) = (a[self.i], a[self.j]);
        if self.lw == GALLOP {
            Action::GallopLeft(a[self.i..self.mid].iter().filter(|x| **x <= right).count())
        } else if self.rw == GALLOP {
            Action::GallopRight(a[self.j..self.hi].iter().filter(|x| **x < left).count())
        } else if right < left {
            Action::Right
        } else {
            Action::Left
        }
    }

    /// Takes an element that won the comparison.
    pub fn win(&mut self, a: &[i64], left: bool) -> Result<(), Illegal> {
        self.take(a, left, 1)?;
        (self.lw, self.rw) = if left { (self.lw + 1, 0) } else { (0, self.rw + 1) };
        Ok(())
    }

    /// Takes all elements that a gallop has passed.
    pub fn gallop(&mut self, a: &[i64], left: bool, count: usize) -> Result<(), Illegal> {
        self.take(a, left, count)?;
        (self.lw, self.rw) = (0, 0);
        Ok(())
    }

    /// Writes the merged elements back, followed by what is left of either run.
    pub fn finish(mut self, a: &mut [i64]) {
        self.buf.extend_from_slice(&a[self.i..self.mid]);
        self.buf.extend_from_slice(&a[self.j..self.hi]);
        a[self.lo..self.hi].copy_from_slice(&self.buf);
    }

    /// Moves `count` elements of the left or the right run to the buffer.
    fn take(&mut self, a: &[i64], left: bool, count: usize) -> Result<(), Illegal> {
        let (from, end) = if left { (&mut self.i, self.mid) } else { (&mut self.j, self.hi) };
        if count > end - *from {
            return Err(Illegal("the run does not have that many elements left"));
        }
        self.buf.extend_from_slice(&a[*from..*from + count]);
        *from += count;
        Ok(())
    }

    /// Returns whether a client's merge lies in an array of `n` cells and merges two of the runs.
    pub fn fits(&self, n: usize, runs: usize) -> bool {
        self.at.saturating_add(1) < runs && self.hi <= n && self.has_taken_what_is_missing()
    }

    fn has_taken_what_is_missing(&self) -> bool {
        let ordered =
            self.lo <= self.i && self.i <= self.mid && self.mid <= self.j && self.j <= self.hi;
        ordered && self.buf.len() == self.i - self.lo + self.j - self.mid
    }

    /// Returns whether one of the runs is used up.
    pub fn is_complete(&self) -> bool {
        self.i == self.mid || self.j == self.hi
    }

    /// Returns whether this action may follow: single elements before the seventh win in a row,
    /// gallops after it.
    pub fn allows(&self, action: Action) -> bool {
        match action {
            Action::Left | Action::Right => self.lw.max(self.rw) < GALLOP,
            Action::GallopLeft(_) => self.lw == GALLOP,
            Action::GallopRight(_) => self.rw == GALLOP,
            _ => true,
        }
    }

    /// Returns whether the elements that the action took from one run belong before the rest of the
    /// other. Among equal elements, those of the left run come first.
    pub fn is_stable_after(&self, action: Action, a: &[i64]) -> bool {
        let (left, right) = (moves::part(a, self.i..self.mid), moves::part(a, self.j..self.hi));
        let taken = self.buf.last();

        match action {
            Action::Left | Action::GallopLeft(_) => {
                right.first().is_none_or(|next| taken <= Some(next))
            }
            _ => left.first().is_none_or(|next| taken < Some(next)),
        }
    }

    /// Returns whether a gallop took all elements of its run that belong before the next one of the
    /// other run.
    pub fn has_galloped_far_enough(&self, action: Action, a: &[i64]) -> bool {
        let (left, right) = (moves::part(a, self.i..self.mid), moves::part(a, self.j..self.hi));
        let (Some(left), Some(right)) = (left.first(), right.first()) else { return true };

        match action {
            Action::GallopLeft(_) => left > right,
            Action::GallopRight(_) => right >= left,
            _ => true,
        }
    }

    /// Returns whether the buffer holds as many elements as were taken, in ascending order.
    pub fn is_consistent(&self) -> bool {
        self.has_taken_what_is_missing() && self.buf.is_sorted()
    }
}
