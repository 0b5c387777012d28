//! The record of a run of one task: an agent with several engines has only the one that is asked
//! about the task.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{RecordedAgent, RecordedAgents};
use prime_protocol::Role;
use prime_settings::{Backing, Engine, first_that_knows, implementation};

impl RecordedAgent {
    /// The engines that it may ask, as an agent of this role.
    pub(crate) fn engines(&self, role: Role) -> Vec<&str> {
        let backing = implementation(role, &self.implementation).map(|known| known.backing);
        let named = self.options.get("engine").filter(|_| backing == Some(Backing::Engine));
        match named {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name],
            _ => Vec::new(),
        }
    }

    /// Reduces the engines to the one that is asked about this task and returns its name.
    fn narrow(
        &mut self,
        role: Role,
        task: &str,
        entries: &BTreeMap<String, Engine>,
    ) -> Option<String> {
        let has_learnt =
            |name: &&str| entries.get(*name).and_then(|engine| engine.has_learnt(task));

        let asked = (*first_that_knows(&self.engines(role), has_learnt)?).to_owned();
        self.options.insert("engine".to_owned(), asked.clone().into());
        Some(asked)
    }
}

impl RecordedAgents {
    /// The agents as a run of this task uses them.
    #[must_use]
    pub fn for_task(&self, task: &str, entries: &BTreeMap<String, Engine>) -> Self {
        let mut narrowed = self.clone();
        let roles = [
            (Role::Executor, &mut narrowed.executor),
            (Role::Verifier, &mut narrowed.verifier),
            (Role::Coordinator, &mut narrowed.coordinator),
        ];
        let locator = narrowed.locator.iter_mut().map(|role| (Role::Verifier, role));
        let mut asked = BTreeSet::new();
        for (role, recorded) in roles.into_iter().chain(locator) {
            let agents = recorded.agents.values_mut();
            asked.extend(agents.filter_map(|agent| agent.narrow(role, task, entries)));
        }

        // A run does not need the engines that it never asks.
        narrowed.engines.retain(|name, _| asked.contains(name));
        narrowed
    }
}
