//! An index (of a vertex, node, cell or tick) that may be absent: `-1` in JSON, `-` in action
//! lines.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An `Option<usize>` in half its size: states hold thousands of these and are copied at every
/// step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalIndex(i64);

impl OptionalIndex {
    pub const NONE: Self = Self(-1);

    pub fn some(index: usize) -> Self {
        Self(i64::try_from(index).expect("invariant: numbers of lines and inputs are below 2^53"))
    }

    pub fn get(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }
}

impl From<OptionalIndex> for Option<usize> {
    fn from(index: OptionalIndex) -> Self {
        index.get()
    }
}

impl From<Option<usize>> for OptionalIndex {
    fn from(index: Option<usize>) -> Self {
        index.map_or(Self::NONE, Self::some)
    }
}

impl fmt::Display for OptionalIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(index) => index.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl Serialize for OptionalIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for OptionalIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            number if number < -1 => Err(D::Error::custom(format!(
                "{number} is not a natural number; write -1 for none"
            ))),
            number => Ok(Self(number)),
        }
    }
}
