//! The three agents of a ring.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who does which part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Proposes a step.
    Executor,
    /// Scores its violations.
    Verifier,
    /// Decides whether the step stays.
    Coordinator,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Executor, Self::Verifier, Self::Coordinator];

    pub fn name(self) -> &'static str {
        ["executor", "verifier", "coordinator"][self as usize]
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
