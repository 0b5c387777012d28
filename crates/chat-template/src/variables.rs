//! Variables that a configuration gives to a template.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names that `transformers` or the program gives.
const RESERVED: [&str; 7] = [
    "messages",
    "add_generation_prompt",
    "continue_final_message",
    "bos_token",
    "eos_token",
    "raise_exception",
    "strftime_now",
];
/// Longest text of all variables as JSON, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// A variable that no template can be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is not a name of Jinja.
    #[error("`{0}` cannot be a variable: use letters, digits and `_`, and begin with a letter")]
    Name(String),
    /// The program gives this name itself.
    #[error("`{0}` cannot be set: it is given by the program")]
    Reserved(String),
    /// They are too long.
    #[error("they take {0} bytes as JSON, shorten them to at most {BYTES_MAX}")]
    TooLong(usize),
    /// `date` is not a date.
    #[error("`date` is {0}, write it as \"2026-11-29\"")]
    Date(String),
}

/// Checks names and sizes of variables.
///
/// # Errors
/// The first that is wrong.
pub fn check_variables(variables: &BTreeMap<String, Value>) -> Result<(), VariableError> {
    for name in variables.keys() {
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return Err(VariableError::Name(name.clone()));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(VariableError::Reserved(name.clone()));
        }
    }
    if let Some(date) = variables.get(DATE) {
        let written = date.as_str().and_then(|text| text.parse::<jiff::civil::Date>().ok());
        if written.is_none() {
            return Err(VariableError::Date(date.to_string()));
        }
    }
    match serde_json::to_string(variables).map_or(usize::MAX, |text| text.len()) {
        bytes if bytes > BYTES_MAX => Err(VariableError::TooLong(bytes)),
        _ => Ok(()),
    }
}

/// The variable that sets what `strftime_now` takes for today.
pub(crate) const DATE: &str = "date";
