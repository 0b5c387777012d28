//! An optional value, written as its text or `""`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is written as its text, or `""` for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalText<T>(pub Option<T>);

impl<T: fmt::Display> Serialize for OptionalText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_str(""),
        }
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for OptionalText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = (!text.is_empty()).then(|| text.parse().map_err(serde::de::Error::custom));
        value.transpose().map(Self)
    }
}
