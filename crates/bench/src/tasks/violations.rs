//! The set of constraints that a step breaks, and its weighted sum V(s) (eq. 2).

use super::spec::{Constraint, Kinds, Spec};

/// A set of indices into a task's constraints (at most 32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Violations(u32);

impl Violations {
    /// No violation.
    pub const NONE: Self = Self(0);
    /// Most constraints of a task.
    pub const CONSTRAINTS_MAX: usize = 32;
    /// The constraint `format` alone: by convention the first of every task.
    pub const FORMAT: Self = Self(1);

    /// Records that the constraint at `index` is broken unless `holds`.
    pub fn require(&mut self, index: usize, holds: bool) {
        if !holds {
            self.0 |= 1 << index;
        }
    }

    /// Returns whether nothing is violated.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the constraint at `index` is violated.
    pub fn contains(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// The violations whose constraint is of one of these kinds.
    #[must_use]
    pub fn of_kinds(self, spec: &Spec, kinds: Kinds) -> Self {
        let mut kept = Self::NONE;
        for (index, constraint) in spec.constraints.iter().enumerate() {
            kept.require(index, !(self.contains(index) && kinds.contains(constraint.kind)));
        }
        kept
    }

    /// The violated constraints of a task, in the order of its page.
    pub fn iter(self, spec: &'static Spec) -> impl Iterator<Item = &'static Constraint> {
        spec.constraints
            .iter()
            .enumerate()
            .filter(move |(index, _)| self.contains(*index))
            .map(|(_, c)| c)
    }

    /// V(s) = Σ weight · \[violated\], in tenths.
    pub fn tenths(self, spec: &'static Spec) -> u32 {
        self.iter(spec).map(|constraint| constraint.severity.tenths()).sum()
    }
}
