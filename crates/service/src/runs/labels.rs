//! The labels that clients give their runs: names with values, by which runs are found.

use std::collections::BTreeMap;

use prime_printable::is_escaped;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};
use utoipa::openapi::{RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Values by name.
pub type Labels = BTreeMap<String, String>;

/// Maximum labels of a run.
pub const LABELS_MAX: usize = 16;
/// Longest name, in characters.
pub const LABEL_NAME_MAX: usize = 64;
/// Longest value, in characters.
pub const LABEL_VALUE_MAX: usize = 128;
/// What stands between name and value where runs are looked for.
const BEFORE_VALUE: char = ':';

/// Values without the characters that control how a text is shown, as in
/// [`prime_printable::is_escaped`].
const VALUE_PATTERN: &str =
    r"^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*$";

/// Labels in the OpenAPI document.
pub struct LabelMap;

impl PartialSchema for LabelMap {
    fn schema() -> RefOr<Schema> {
        map_schema(Type::String.into())
    }
}

impl ToSchema for LabelMap {}

/// Changes of labels in the OpenAPI document.
pub struct LabelChanges;

impl PartialSchema for LabelChanges {
    fn schema() -> RefOr<Schema> {
        map_schema(SchemaType::Array(vec![Type::String, Type::Null]))
    }
}

impl ToSchema for LabelChanges {}

/// An object whose names are those of labels, and whose values have this type.
fn map_schema(value: SchemaType) -> RefOr<Schema> {
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^[A-Za-z0-9._/-]{{1,{LABEL_NAME_MAX}}}$")));
    let value = ObjectBuilder::new()
        .schema_type(value)
        .max_length(Some(LABEL_VALUE_MAX))
        .pattern(Some(VALUE_PATTERN));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(name))
        .additional_properties(Some(value))
        .max_properties(Some(LABELS_MAX))
        .into()
}

/// What is wrong with labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLabels {
    /// There are more than 16.
    #[error("there are {0}; give at most {LABELS_MAX}")]
    TooMany(usize),
    /// A name is empty, longer than 64 characters, or has another character.
    #[error(
        "{0:?} is not a name for a label; give 1 to {LABEL_NAME_MAX} letters, digits, `.`, `_`, `-` \
         and `/`"
    )]
    Name(String),
    /// A value is longer than 128 characters.
    #[error("the value of `{name}` has {length} characters; give at most {LABEL_VALUE_MAX}")]
    LongValue {
        /// The label's name.
        name: String,
        /// Characters of its value.
        length: usize,
    },
    /// A value has a character that a screen does not show as it is.
    #[error(
        "the value of `{name}` has the character U+{character:04X}, which controls how a text is \
         shown: leave it out"
    )]
    Unprintable {
        /// The label's name.
        name: String,
        /// The character.
        character: u32,
    },
}

/// Checks the labels that a client gives.
///
/// # Errors
/// The first one that is not allowed.
pub fn check_labels(labels: &Labels) -> Result<(), BadLabels> {
    if labels.len() > LABELS_MAX {
        return Err(BadLabels::TooMany(labels.len()));
    }
    for (name, value) in labels {
        if !is_name(name) {
            return Err(BadLabels::Name(name.clone()));
        }
        let length = value.chars().count();
        if length > LABEL_VALUE_MAX {
            return Err(BadLabels::LongValue { name: name.clone(), length });
        }
        let is_unprintable = |&c: &char| c.is_control() || is_escaped(c);
        if let Some(character) = value.chars().find(is_unprintable) {
            return Err(BadLabels::Unprintable { name: name.clone(), character: character.into() });
        }
    }
    Ok(())
}

/// Checks what runs are looked for by: a label's name, or `NAME:VALUE`.
///
/// # Errors
/// [`BadLabels::Name`] if no run can have such a label.
pub fn check_wanted_label(wanted: &str) -> Result<(), BadLabels> {
    let name = wanted.split(BEFORE_VALUE).next().unwrap_or_default();
    if is_name(name) { Ok(()) } else { Err(BadLabels::Name(name.to_owned())) }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    (1..=LABEL_NAME_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

/// What labels are found by: each name, and each name with its value.
pub(super) fn searched_labels(labels: &Labels) -> Vec<String> {
    let both =
        |(name, value): (&String, &String)| [name.clone(), format!("{name}{BEFORE_VALUE}{value}")];
    labels.iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn labels_are_few_short_texts_without_control_characters() {
        let longest = ("n".repeat(64), "ö".repeat(128));
        let good = [("team/a.b-c_D9", "größe: \"x\""), ("empty", ""), (&longest.0, &longest.1)];
        assert_eq!(check_labels(&labels(&good)), Ok(()));

        let many: Labels = (0..17).map(|number| (number.to_string(), String::new())).collect();
        for (bad, part) in [
            (many, "there are 17; give at most 16"),
            (labels(&[("", "x")]), "\"\" is not a name for a label"),
            (labels(&[("a:b", "x")]), "\"a:b\" is not a name"),
            (labels(&[("größe", "x")]), "is not a name"),
            (labels(&[(&"n".repeat(65), "x")]), "1 to 64 letters"),
            (labels(&[("a", &"v".repeat(129))]), "`a` has 129 characters; give at most 128"),
            (labels(&[("a", "x\ny")]), "`a` has the character U+000A"),
            (labels(&[("a", "x\u{202e}y")]), "`a` has the character U+202E, which controls how"),
        ] {
            let error = check_labels(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_wanted_label_has_a_name_that_a_run_can_have() {
        for wanted in ["team", "team:red", "team:", "a:b:c", "ticket/1: "] {
            assert_eq!(check_wanted_label(wanted), Ok(()));
        }
        for wanted in ["", ":red", "größe", "a b:c", &"n".repeat(65)] {
            assert!(check_wanted_label(wanted).is_err(), "{wanted}");
        }
    }

    #[test]
    fn labels_are_found_by_name_and_by_value() {
        let found = searched_labels(&labels(&[("team", "a:b"), ("x", "")]));
        assert_eq!(found, ["team", "team:a:b", "x", "x:"]);
    }
}
