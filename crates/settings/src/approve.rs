//! Which steps wait for approval, `run.approve`, and what happens to those that nobody decides.

use prime_problems::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::SettingsError;

/// Longest rule, in bytes.
pub const RULE_BYTES_MAX: usize = 1_000;

/// What happens to a step when nobody has decided about it in time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ApproveElse {
    /// The line is refused, and the executor proposes another.
    Reject,
    /// The line is committed.
    Accept,
    /// The run ends with what is committed.
    #[default]
    End,
}

impl ApproveElse {
    /// The name as it is configured.
    pub fn name(self) -> &'static str {
        ["reject", "accept", "end"][self as usize]
    }
}

/// Which steps wait for approval before they are committed.
#[derive(Debug)]
pub enum ApprovalRule {
    /// Those that the verifiers flag for review.
    Flagged,
    /// Each whose number in its trajectory, counted from 1, is a multiple.
    EverySteps(u64),
    /// Those of which a CEL expression over `step` is true.
    When(Condition),
}

impl ApprovalRule {
    /// Reads `flagged`, `every N steps`, or a CEL expression over `step`; `None` for an empty text.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Option<Self>, String> {
        if text.len() > RULE_BYTES_MAX {
            return Err(format!("it has {} bytes, and may have {RULE_BYTES_MAX}", text.len()));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [] => Ok(None),
            ["flagged"] => Ok(Some(Self::Flagged)),
            ["every", "step"] => Ok(Some(Self::EverySteps(1))),
            ["every", number, "step" | "steps"] => match number.parse() {
                Ok(every) if every > 0 => Ok(Some(Self::EverySteps(every))),
                _ => Err(format!("`{number}` is not a number of steps from 1 on")),
            },
            _ => match Condition::read(text) {
                Ok(condition) => Ok(Some(Self::When(condition))),
                Err(reason) => Err(format!(
                    "it is neither `flagged` nor `every N steps` nor a CEL expression over `step`: \
                     {reason}"
                )),
            },
        }
    }
}

/// Checks the rule of approvals, `run.approve`.
pub(super) fn check_approve(
    found: &str,
    conflict: &dyn Fn(&[&str], String) -> SettingsError,
) -> Result<(), SettingsError> {
    ApprovalRule::read(found).map(drop).map_err(|reason| {
        conflict(&["run", "approve"], format!("`run.approve` is {found:?}: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words_or_expressions() {
        let every = |text: &str| match ApprovalRule::read(text).unwrap().unwrap() {
            ApprovalRule::EverySteps(every) => every,
            other => panic!("{other:?}"),
        };
        assert!(matches!(ApprovalRule::read(" "), Ok(None)));
        assert!(matches!(ApprovalRule::read("flagged"), Ok(Some(ApprovalRule::Flagged))));
        assert_eq!((every("every step"), every("every  25 steps")), (1, 25));
        let when = ApprovalRule::read("step.score > 0.0 && step.depth >= 3");
        assert!(matches!(when, Ok(Some(ApprovalRule::When(_)))));

        for (text, said) in [
            ("every 0 steps", "from 1 on"),
            ("every few steps", "`few`"),
            ("always", "`flagged`"),
            ("input.n > 3", "`input`"),
        ] {
            let refused = ApprovalRule::read(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
        assert!(ApprovalRule::read(&"a".repeat(1_001)).unwrap_err().contains("1000"));
    }
}
