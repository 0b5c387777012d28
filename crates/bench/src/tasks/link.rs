//! A natural number (of a vertex, node or cell, a value, a tick) where there may be none: -1 in JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A natural number, or none; half the size of an `Option<usize>`, for states hold thousands and are copied every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(i64);

impl Link {
    pub const NONE: Self = Self(-1);

    pub fn to(target: usize) -> Self {
        Self(i64::try_from(target).expect("invariant: numbers of lines and inputs are below 2^53"))
    }

    pub fn get(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }
}

impl From<Link> for Option<usize> {
    fn from(link: Link) -> Self {
        link.get()
    }
}

impl From<Option<usize>> for Link {
    fn from(target: Option<usize>) -> Self {
        target.map_or(Self::NONE, Self::to)
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            number if number < -1 => Err(D::Error::custom(format!("{number} is no natural number; -1 means none"))),
            number => Ok(Self(number)),
        }
    }
}
