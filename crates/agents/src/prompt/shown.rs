//! What of a turn a prompt shows, and how.

use prime_settings::{FeedbackName, ViewName};
use serde_json::Value;

use super::readable::readable;

/// What of a turn a prompt shows, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Maximum number of worked examples.
    pub examples: u32,
    /// Maximum tokens of all examples together, as far as they can be estimated without a model.
    pub example_tokens: u32,
    /// How inputs and states are written.
    pub view: ViewName,
    /// What is said about rejected lines.
    pub feedback: FeedbackName,
    /// True if the task's constraints are listed.
    pub constraints: bool,
}

impl Default for Shown {
    /// The defaults, which every template can show.
    fn default() -> Self {
        Self {
            examples: 0,
            example_tokens: 1_024,
            view: ViewName::Json,
            feedback: FeedbackName::Verdict,
            constraints: true,
        }
    }
}

/// Texts of inputs and states.
pub(super) trait TextOf {
    fn text(self, value: &Value) -> String;
}

impl TextOf for ViewName {
    fn text(self, value: &Value) -> String {
        match self {
            Self::Json => value.to_string(),
            Self::Readable => readable(value),
        }
    }
}
