//! The agents that one run chooses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use prime_agent_set::Names;
use prime_protocol::Role;
use prime_settings::Settings;

/// Agents that a run uses instead of the configured ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// Implementation or definition of the executor; the configured one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Implementation or definition of the verifier; the configured one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
    /// Implementation or definition of the coordinator; the configured one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<String>,
}

impl From<&Names> for Overrides {
    fn from(names: &Names) -> Self {
        let Names { executor, verifier, coordinator, .. } = names.clone();
        Self { executor: Some(executor), verifier: Some(verifier), coordinator: Some(coordinator) }
    }
}

impl Overrides {
    /// The settings with these agents.
    pub fn apply(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let agents = &mut settings.agents;
        for (chosen, implementation) in [
            (&self.executor, &mut agents.executor.implementation),
            (&self.coordinator, &mut agents.coordinator.implementation),
        ] {
            if let Some(chosen) = chosen {
                implementation.clone_from(chosen);
            }
        }
        if let Some(chosen) = &self.verifier {
            agents.verifier.choose(chosen);
        }
        settings
    }

    /// The chosen agent of a role.
    pub fn agent(&self, role: Role) -> Option<&str> {
        match role {
            Role::Executor => self.executor.as_deref(),
            Role::Verifier => self.verifier.as_deref(),
            Role::Coordinator => self.coordinator.as_deref(),
        }
    }

    /// Chooses the agent of a role.
    pub fn choose(&mut self, role: Role, name: &str) {
        let agent = match role {
            Role::Executor => &mut self.executor,
            Role::Verifier => &mut self.verifier,
            Role::Coordinator => &mut self.coordinator,
        };
        *agent = Some(name.to_owned());
    }
}
