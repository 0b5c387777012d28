//! Sets of automaton states: ascending lists, written `-` in a line if empty.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::action::LineField;
use super::pattern::Fields;

/// States in the given order; a valid set only if [`StateSet::is_ascending_below`] holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSet(Vec<u16>);

impl StateSet {
    pub fn of(state: u16) -> Self {
        Self(vec![state])
    }

    /// The closure of `seeds` under `successors`, among `states` states.
    pub fn closure<I: IntoIterator<Item = u16>>(
        states: usize,
        seeds: impl IntoIterator<Item = u16>,
        successors: impl Fn(u16) -> I,
    ) -> Self {
        let mut inside = vec![false; states];
        let mut open: Vec<u16> = Vec::new();
        let mut visit = |q: u16, open: &mut Vec<u16>| {
            if !std::mem::replace(&mut inside[usize::from(q)], true) {
                open.push(q);
            }
        };

        for q in seeds {
            visit(q, &mut open);
        }
        while let Some(q) = open.pop() {
            for next in successors(q) {
                visit(next, &mut open);
            }
        }

        Self((0..).zip(&inside).filter(|(_, inside)| **inside).map(|(q, _)| q).collect())
    }

    /// Returns whether the states are ascending, distinct and below `states`.
    pub fn is_ascending_below(&self, states: usize) -> bool {
        self.0.is_sorted_by(|a, b| a < b) && self.0.last().is_none_or(|q| usize::from(*q) < states)
    }

    pub fn contains(&self, state: u16) -> bool {
        self.0.binary_search(&state).is_ok()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }
}

impl LineField for StateSet {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.nats(index).map(Self)
    }
}

impl fmt::Display for StateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }

        for (place, q) in self.0.iter().enumerate() {
            write!(f, "{}{q}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}
