//! The three agents of a ring.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The role that does a part of a turn.
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
    /// All roles, in the order of a turn.
    pub const ALL: [Self; 3] = [Self::Executor, Self::Verifier, Self::Coordinator];

    /// The name that configurations and results use.
    pub fn name(self) -> &'static str {
        ["executor", "verifier", "coordinator"][self as usize]
    }
}

/// Milliseconds that a step waited for each agent. One that replied at once counts as 0, however
/// long it computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RoleTimes {
    /// Milliseconds that it waited for the executor.
    pub executor: u32,
    /// Milliseconds that it waited for the verifier.
    pub verifier: u32,
    /// Milliseconds that it waited for the coordinator.
    pub coordinator: u32,
}

impl RoleTimes {
    /// Adds the time that a step waited for an agent.
    pub fn add(&mut self, role: Role, waited: Duration) {
        let time = match role {
            Role::Executor => &mut self.executor,
            Role::Verifier => &mut self.verifier,
            Role::Coordinator => &mut self.coordinator,
        };
        *time = time.saturating_add(u32::try_from(waited.as_millis()).unwrap_or(u32::MAX));
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
