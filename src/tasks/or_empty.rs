//! A value or nothing, which the pages write as the empty text.

use std::fmt;

use serde::{Serialize, Serializer};

/// A value that is written as its text, or `""` for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrEmpty<T>(pub Option<T>);

impl<T: fmt::Display> Serialize for OrEmpty<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_str(""),
        }
    }
}
