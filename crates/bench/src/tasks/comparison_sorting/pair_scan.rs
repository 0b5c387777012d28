//! Scans over pairs of cells: invariants of the sorts that compare pairs in a fixed order and swap
//! those out of order. Nothing here says which line comes next.

/// The effect of a line on a pair of places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PairLine {
    Cmp(usize, usize),
    Swap(usize, usize),
    Other,
}

impl PairLine {
    fn pair(self) -> Option<(usize, usize)> {
        match self {
            Self::Cmp(i, j) | Self::Swap(i, j) => Some((i, j)),
            Self::Other => None,
        }
    }
}

/// `From<&Action> for PairLine`, for actions with the forms `Cmp(i, j)` and `Swap(i, j)`.
macro_rules! pair_lines {
    () => {
        impl From<&Action> for PairLine {
            fn from(action: &Action) -> Self {
                match *action {
                    Action::Cmp(i, j) => Self::Cmp(i, j),
                    Action::Swap(i, j) => Self::Swap(i, j),
                    _ => Self::Other,
                }
            }
        }
    };
}

pub(crate) use pair_lines;

/// The left places of the pairs that a pass compares: from `first` to `last`, `step` further each
/// time.
#[derive(Clone, Copy)]
pub struct Scan {
    pub first: usize,
    pub last: usize,
    pub step: isize,
}

/// A line and the one before it.
#[derive(Clone, Copy)]
pub struct Lines {
    last: PairLine,
    line: PairLine,
}

impl Lines {
    pub fn new<'a, A>(last: Option<&'a A>, line: &'a A) -> Self
    where
        PairLine: From<&'a A>,
    {
        Self { last: last.map_or(PairLine::Other, PairLine::from), line: line.into() }
    }

    /// The left place of the pair of the line before.
    pub fn seen(self) -> Option<usize> {
        self.last.pair().map(|(i, _)| i)
    }

    /// Returns whether the line, if it is a `cmp`, takes the scan to its next pair. Without a scan
    /// no `cmp` may follow.
    pub fn follow(self, scan: Option<Scan>) -> bool {
        let PairLine::Cmp(i, _) = self.line else { return true };

        scan.is_some_and(|scan| {
            let inside = (scan.first.min(scan.last)..=scan.first.max(scan.last)).contains(&i);
            // After a line without a pair the scan begins anew.
            let next =
                self.seen().map_or(Some(scan.first), |seen| seen.checked_add_signed(scan.step));
            inside && next == Some(i)
        })
    }

    /// Returns whether the line before was the last of the scan.
    pub fn complete(self, scan: Scan) -> bool {
        self.seen() == Some(scan.last)
    }

    /// Returns whether the line, if it is a `swap`, follows the `cmp` of the same pair.
    pub fn swap_what_was_compared(self) -> bool {
        match self.line {
            PairLine::Swap(i, j) => self.last == PairLine::Cmp(i, j),
            _ => true,
        }
    }

    /// Returns whether the pair of the line before is in order in `a`, unless this line is a
    /// `swap`.
    pub fn leave_in_order(self, a: &[i64]) -> bool {
        match (self.line, self.last.pair()) {
            (PairLine::Swap(..), _) | (_, None) => true,
            (_, Some((i, j))) => a.get(i) <= a.get(j),
        }
    }
}
