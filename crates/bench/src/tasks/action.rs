//! Actions: the forms of their lines, how a line is read and written, and the state field that
//! keeps the last one.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Rational;
use super::optional_index::OptionalIndex;
use super::pattern::{self, Fields};

/// An action of a task. `Display` writes its line.
pub trait TaskAction: Clone + PartialEq + fmt::Display + fmt::Debug + Send + Sync {
    /// The forms of its lines, in the language of [`pattern`].
    const FORMS: &'static [&'static str];

    /// The action of a line that matched `FORMS[form]`; `None` if a value is out of range.
    fn read(form: usize, fields: &Fields<'_>) -> Option<Self>;

    /// Returns whether this is the action `done`, after which a trace has ended unless the task
    /// says otherwise.
    fn is_done(&self) -> bool {
        false
    }

    /// Parses a whole line.
    fn parse(line: &str) -> Option<Self> {
        pattern::parse(Self::FORMS, line).and_then(|(form, fields)| Self::read(form, &fields))
    }
}

/// A type that one field of an action line holds.
pub trait LineField: Sized {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self>;
}

macro_rules! natural_fields {
    ($($type:ty),+) => {
        $(impl LineField for $type {
            fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
                fields.nat(index)
            }
        })+
    };
}

natural_fields!(u8, u64, usize);

impl LineField for i64 {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.int(index)
    }
}

impl LineField for Rational {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.rational(index)
    }
}

impl LineField for String {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.text(index).map(str::to_owned)
    }
}

impl LineField for OptionalIndex {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.optional::<usize>(index).map(Self::from)
    }
}

/// The state field `last`: the last action, written as its line; `""` at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last<A>(pub Option<A>);

impl<A: fmt::Display> Serialize for Last<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(action) => serializer.collect_str(action),
            None => serializer.serialize_str(""),
        }
    }
}

impl<'de, A: TaskAction> Deserialize<'de> for Last<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = String::deserialize(deserializer)?;

        if line.is_empty() {
            return Ok(Self(None));
        }

        A::parse(&line)
            .map(|action| Self(Some(action)))
            .ok_or_else(|| serde::de::Error::custom(no_action(&line)))
    }
}

fn no_action(line: &str) -> String {
    // Lines can be long: the start is enough to recognise one.
    let start: String = line.chars().take(40).collect();
    format!("{start:?} is not an action line of the task")
}
