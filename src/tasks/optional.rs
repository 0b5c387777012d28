//! A natural number or nothing, which the pages write as -1.

use serde::{Serialize, Serializer};

/// A natural number, or -1 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optional(pub Option<usize>);

impl Optional {
    pub const NONE: Self = Self(None);
}

impl From<usize> for Optional {
    fn from(number: usize) -> Self {
        Self(Some(number))
    }
}

impl Serialize for Optional {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(number) => serializer.serialize_u64(number as u64),
            None => serializer.serialize_i64(-1),
        }
    }
}
