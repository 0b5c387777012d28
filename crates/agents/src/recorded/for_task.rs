//! The record of a run of one task: an agent with several engines has only the one that is asked
//! about the task.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{RecordedAgent, RecordedAgents};
use prime_protocol::Role;
use prime_settings::{AgentAdapters, Backing, Engine, first_that_knows, implementation};

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

    /// The adapters that its options name.
    fn adapters(&self) -> (String, BTreeMap<String, String>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own = self.options.get("adapter").map(text).unwrap_or_default();
        let by_task = self.options.get("adapters").and_then(Value::as_object);
        let by_task = by_task.into_iter().flatten();
        (own, by_task.map(|(task, adapter)| (task.clone(), text(adapter))).collect())
    }

    /// Reduces the adapters to the one for this task and returns its path, if it is a file.
    fn narrow_adapters(&mut self, role: Role, task: &str) -> Option<String> {
        let (own, by_task) = self.adapters();
        let adapters = AgentAdapters { own: &own, scale: 1.0, by_task: &by_task };
        let asked = adapters.of_task(task).map(str::to_owned);
        self.options.remove("adapters");
        self.options.remove("adapter");
        let asked = asked?;
        self.options.insert("adapter".to_owned(), asked.clone().into());
        (!self.engines(role).is_empty()).then_some(asked)
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
        let (mut asked, mut adapters) = (BTreeSet::new(), BTreeSet::new());
        for (role, recorded) in roles.into_iter().chain(locator) {
            for agent in recorded.agents.values_mut() {
                adapters.extend(agent.narrow_adapters(role, task));
                asked.extend(agent.narrow(role, task, entries));
            }
        }

        // A run does not need the engines and adapters that it never asks.
        narrowed.engines.retain(|name, _| asked.contains(name));
        narrowed.adapters.retain(|path, _| adapters.contains(path));
        narrowed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(executor: &Value) -> RecordedAgents {
        let role = |agent: Value| json!({"name": "it", "agents": {"it": agent}});
        serde_json::from_value(json!({
            "version": 1,
            "executor": role(json!({"implementation": "llama", "options": executor})),
            "verifier": role(json!({"implementation": "rules"})),
            "coordinator": role(json!({"implementation": "threshold"})),
            "thresholds": {"tau_soft": 0.0, "tau_hard": 1.0, "retries_max": 1},
            "engines": {"tiny": null},
            "adapters": {"all.gguf": "aa", "uf.gguf": "bb"},
        }))
        .expect("a record")
    }

    #[test]
    fn a_run_keeps_the_adapter_of_its_task_alone() {
        let adapters = json!({"union-find": "uf.gguf", "sudoku": ""});
        let options = json!({"engine": "tiny", "adapter": "all.gguf", "adapters": adapters});
        let all = recorded(&options);
        for (task, kept) in
            [("union-find", Some("uf.gguf")), ("n-queens", Some("all.gguf")), ("sudoku", None)]
        {
            let record = all.for_task(task, &BTreeMap::new());
            let options = &record.executor.agents["it"].options;
            assert_eq!(options.get("adapter").and_then(Value::as_str), kept, "{task}");
            assert!(!options.contains_key("adapters"), "{task}");
            assert_eq!(record.adapters.keys().map(String::as_str).next(), kept, "{task}");
            assert_eq!(record.for_task(task, &BTreeMap::new()), record, "{task}");
        }
        assert_eq!(
            all.for_task("union-find", &BTreeMap::new()).needs(),
            ["adapter uf.gguf with SHA-256 bb", "engine `tiny`"]
        );
    }

    #[test]
    fn the_adapters_of_servers_are_no_files() {
        let mut all = recorded(&json!({"pool": "gpu", "adapter": "uf.gguf"}));
        all.executor.agents.get_mut("it").unwrap().implementation = "openai".to_owned();
        let record = all.for_task("union-find", &BTreeMap::new());
        assert_eq!(record.executor.agents["it"].options["adapter"], "uf.gguf");
        assert!(record.adapters.is_empty());
    }
}
