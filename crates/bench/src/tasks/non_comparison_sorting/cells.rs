//! Cells that are empty or hold a small number, in four bytes: a state is copied at every step.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list of cells; an empty one is null in JSON.
#[derive(Clone)]
pub struct Cells(Vec<u32>);

const EMPTY: u32 = u32::MAX;

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cells: Vec<Option<u32>> = Vec::deserialize(deserializer)?;
        if cells.contains(&Some(EMPTY)) {
            return Err(serde::de::Error::custom(format!("every value must be below {EMPTY}")));
        }
        Ok(Self(cells.into_iter().map(|cell| cell.unwrap_or(EMPTY)).collect()))
    }
}

impl Cells {
    pub fn empty(count: usize) -> Self {
        Self(vec![EMPTY; count])
    }

    pub fn get(&self, place: usize) -> Option<usize> {
        Some(self.0[place]).filter(|value| *value != EMPTY).map(|value| value as usize)
    }

    pub fn set(&mut self, place: usize, value: usize) {
        self.0[place] =
            u32::try_from(value).expect("invariant: places and values of an input are small");
    }

    pub fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        (0..self.0.len()).map(|place| self.get(place))
    }

    /// The cells with -1 for an empty one.
    pub fn or_minus_one(&self) -> Vec<i64> {
        self.0.iter().map(|value| if *value == EMPTY { -1 } else { i64::from(*value) }).collect()
    }

    /// Reads what [`Cells::serialize_or_minus_one`] writes.
    pub fn deserialize_or_minus_one<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Self, D::Error> {
        let cells: Vec<i64> = Vec::deserialize(deserializer)?;
        let cell = |value: i64| {
            if value == -1 {
                Some(EMPTY)
            } else {
                u32::try_from(value).ok().filter(|v| *v != EMPTY)
            }
        };

        let cells: Option<Vec<u32>> = cells.into_iter().map(cell).collect();
        let refuse =
            || serde::de::Error::custom(format!("must be places below {EMPTY}, -1 for none"));
        cells.map(Self).ok_or_else(refuse)
    }

    /// Serialises a field whose empty cells are written -1.
    pub fn serialize_or_minus_one<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.or_minus_one().serialize(serializer)
    }
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
