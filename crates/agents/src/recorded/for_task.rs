//! The record of a run of one task: of an agent's several engines, it has the one that is asked
//! about the task.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{RecordedAgent, RecordedAgents};
use prime_settings::{Engine, first_that_knows};

impl RecordedAgent {
    /// The engines that it may ask.
    pub(super) fn engines(&self) -> Vec<&str> {
        let named = self.options.get("engine").filter(|_| self.implementation == "llama");
        match named {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name],
            _ => Vec::new(),
        }
    }

    /// Leaves the engine that is asked about this task; gives its name.
    fn narrow(&mut self, task: &str, entries: &BTreeMap<String, Engine>) -> Option<String> {
        let has_learnt =
            |name: &&str| entries.get(*name).and_then(|engine| engine.has_learnt(task));
        let asked = (*first_that_knows(&self.engines(), has_learnt)?).to_owned();
        self.options.insert("engine".to_owned(), asked.clone().into());
        Some(asked)
    }
}

impl RecordedAgents {
    /// The agents as a run of this task uses them.
    #[must_use]
    pub fn for_task(&self, task: &str, entries: &BTreeMap<String, Engine>) -> Self {
        let mut narrowed = self.clone();
        let roles = [&mut narrowed.executor, &mut narrowed.verifier, &mut narrowed.coordinator];
        let agents = roles.into_iter().flat_map(|role| role.agents.values_mut());
        let asked: BTreeSet<_> = agents.filter_map(|agent| agent.narrow(task, entries)).collect();
        narrowed.engines.retain(|name, _| asked.contains(name));
        narrowed
    }
}
