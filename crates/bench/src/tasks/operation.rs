//! Operations in an input: texts such as `push 5`, read and written like action lines.

use super::task::InvalidInput;

/// The most operations that a user may give.
pub const OPERATIONS_MAX: usize = 10_000;

/// The largest value that an operation may carry: sums over all operations stay far below 2^53.
pub const VALUE_MAX: usize = 1_000_000_000;

/// Checks how many operations a user gives: at least one.
///
/// # Errors
/// Names the field and the range.
pub fn validate_count(field: &'static str, count: usize) -> Result<(), InvalidInput> {
    let range = format!("has {count} entries; give 1 to {OPERATIONS_MAX}");
    InvalidInput::unless((1..=OPERATIONS_MAX).contains(&count), field, range)
}

/// Implements serde for a [`TaskAction`](super::TaskAction) as the text of its line.
macro_rules! as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let forms = <Self as $crate::tasks::TaskAction>::FORMS;
                let refuse = || {
                    serde::de::Error::custom(format!("{text:?} has none of the forms {forms:?}"))
                };
                <Self as $crate::tasks::TaskAction>::parse(&text).ok_or_else(refuse)
            }
        }
    };
}

pub(crate) use as_text;
