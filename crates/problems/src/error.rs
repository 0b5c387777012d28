//! Errors in a client's problem: where, what is wrong, and what to do.

use std::fmt::{self, Display, Write};

use super::limits::QUOTE_BYTES_MAX;

/// An invalid definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}; {remedy}")]
pub struct ProblemError {
    /// The field, such as `problem.constraints[2].check`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl ProblemError {
    pub(super) fn new(
        path: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// An error in part of a definition, without its path, which the caller adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub problem: String,
    pub remedy: String,
}

impl Fault {
    /// `problem` says what is wrong, `remedy` what to do.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }

    /// The error at a field, such as `problem.constraints[2].check`.
    pub fn at(self, path: impl Into<String>) -> ProblemError {
        ProblemError::new(path, self.problem, self.remedy)
    }

    /// Refuses a text that is longer than allowed.
    pub fn unless_short(what: &str, bytes: usize, bytes_max: usize) -> Result<(), Self> {
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(Self::new(
            format!("{what} has {bytes} bytes"),
            format!("write it in at most {bytes_max} bytes"),
        ))
    }
}

/// Accepts text up to a length, then fails.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Cut here, so that a huge value in a message is never formatted as a whole.
        for c in text.chars() {
            if self.0.len() >= QUOTE_BYTES_MAX {
                self.0.push('…');
                return Err(fmt::Error);
            }
            self.0.push(if c.is_control() { ' ' } else { c });
        }
        Ok(())
    }
}

/// The beginning of a library's message, on one line. The rest is not even formatted.
pub(super) fn quoted(text: &dyn Display) -> String {
    let mut short = Short(String::new());
    // An error only means that the text was cut.
    let _ = write!(short, "{text}");
    short.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quoted(&"a\nb"), "a b");
        let long = quoted(&"é".repeat(5_000));
        assert!(long.ends_with("é…") && long.len() <= QUOTE_BYTES_MAX + 4, "{}", long.len());
    }
}
