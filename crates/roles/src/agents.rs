//! The agents of a run as a runtime uses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use prime_protocol::Role;

use super::{Coordinator, Executor, Verifier};

/// Identifies [`Agents`] within the process.
pub type AgentSetId = u64;

/// An id that no other agents of this process have.
pub fn next_agent_set_id() -> AgentSetId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // From 1: the watchdog's heartbeat shows 0 before any agent has worked.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The agents of a run by their names in the configuration; part of every result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Names {
    /// The executor.
    pub executor: String,
    /// The verifier.
    pub verifier: String,
    /// The coordinator.
    pub coordinator: String,
    /// The verifier that says where the fault of a refuted trajectory lies, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
}

impl Names {
    /// The agent of a role.
    #[must_use]
    pub fn of(&self, role: Role) -> &str {
        match role {
            Role::Executor => &self.executor,
            Role::Verifier => &self.verifier,
            Role::Coordinator => &self.coordinator,
        }
    }
}

/// A set of agents, one for each role, which a runtime makes as often as it has rings for them.
pub trait Agents: Send + Sync {
    /// The set's id, from [`next_agent_set_id`].
    fn id(&self) -> AgentSetId;

    /// The name of the role's agent in messages.
    fn name(&self, role: Role) -> &str;

    /// Makes an executor for one ring.
    fn executor(&self) -> Arc<dyn Executor>;

    /// Makes a verifier for one ring.
    fn verifier(&self) -> Arc<dyn Verifier>;

    /// Makes a coordinator for one ring.
    fn coordinator(&self) -> Arc<dyn Coordinator>;
}
