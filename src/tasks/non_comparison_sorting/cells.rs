//! Cells that are empty or hold a small number. A state is copied at every step: four bytes a cell make it short.

use serde::{Serialize, Serializer};

/// As JSON, an empty cell is null.
#[derive(Clone)]
pub struct Cells(Vec<u32>);

const EMPTY: u32 = u32::MAX;

impl Cells {
    pub fn empty(count: usize) -> Self {
        Self(vec![EMPTY; count])
    }

    pub fn get(&self, place: usize) -> Option<usize> {
        Some(self.0[place]).filter(|value| *value != EMPTY).map(|value| value as usize)
    }

    pub fn set(&mut self, place: usize, value: usize) {
        self.0[place] = u32::try_from(value).expect("invariant: places and values of an input are small");
    }

    pub fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        (0..self.0.len()).map(|place| self.get(place))
    }

    /// The cells with -1 for an empty one.
    pub fn or_minus_one(&self) -> Vec<i64> {
        self.0.iter().map(|value| if *value == EMPTY { -1 } else { i64::from(*value) }).collect()
    }

    /// For fields whose empty cells are written -1.
    pub fn serialize_or_minus_one<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.or_minus_one().serialize(serializer)
    }
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
