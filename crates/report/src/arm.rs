//! The two sides of `agents.split`.

use serde::{Deserialize, Serialize};

/// A side of the comparison of `agents.split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The side with the configured agent.
    A,
    /// The side with the other agent.
    B,
}

impl Arm {
    /// Its name in results and metrics: `a` or `b`.
    pub fn name(self) -> &'static str {
        ["a", "b"][self as usize]
    }
}
