//! The number of a vertex, node or cell where there may be none: -1 in JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number below 2^31, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(i32);

impl Link {
    pub const NONE: Self = Self(-1);

    pub fn to(target: usize) -> Self {
        Self(i32::try_from(target).expect("invariant: linked things are fewer than 2^31"))
    }

    pub fn get(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.0)
    }
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i32::deserialize(deserializer)? {
            number if number < -1 => Err(D::Error::custom(format!("{number} is no number of a node; -1 means none"))),
            number => Ok(Self(number)),
        }
    }
}
