//! The labels that clients give their runs: names with values, by which runs are found.

use std::collections::BTreeMap;

use utoipa::openapi::schema::ObjectBuilder;
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

/// Labels in the OpenAPI document.
pub struct LabelMap;

impl PartialSchema for LabelMap {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(format!("^[A-Za-z0-9._/-]{{1,{LABEL_NAME_MAX}}}$")));
        let value = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(LABEL_VALUE_MAX))
            .pattern(Some(r"^[^\u0000-\u001f\u007f-\u009f]*$"));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(name))
            .additional_properties(Some(value))
            .max_properties(Some(LABELS_MAX))
            .into()
    }
}

impl ToSchema for LabelMap {}

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
    /// A value has a control character.
    #[error("the value of `{0}` has a control character: leave it out")]
    ControlCharacter(String),
}

/// Checks the labels that a client gives.
///
/// # Errors
/// The first one that is not allowed.
pub fn check_labels(labels: &Labels) -> Result<(), BadLabels> {
    if labels.len() > LABELS_MAX {
        return Err(BadLabels::TooMany(labels.len()));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    for (name, value) in labels {
        if !(1..=LABEL_NAME_MAX).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(BadLabels::Name(name.clone()));
        }
        let length = value.chars().count();
        if length > LABEL_VALUE_MAX {
            return Err(BadLabels::LongValue { name: name.clone(), length });
        }
        if value.contains(char::is_control) {
            return Err(BadLabels::ControlCharacter(name.clone()));
        }
    }
    Ok(())
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
            (labels(&[("a", "x\ny")]), "`a` has a control character"),
        ] {
            let error = check_labels(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn labels_are_found_by_name_and_by_value() {
        let found = searched_labels(&labels(&[("team", "a:b"), ("x", "")]));
        assert_eq!(found, ["team", "team:a:b", "x", "x:"]);
    }
}
