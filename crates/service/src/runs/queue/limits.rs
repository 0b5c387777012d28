//! How many runs are executed at once: of all, of one key, and of one task.

use std::collections::HashMap;

use prime_runtime::RuntimePlan;
use prime_settings::Settings;

/// The limits of a configuration; 0 stands for none.
#[derive(Clone, Debug, Default)]
pub struct QueueLimits {
    /// Turns that the rings hold.
    pub turns_max: u64,
    /// Runs of all keys and tasks.
    pub running_max: u32,
    /// Runs of a key that has no limit of its own.
    pub key_running_max: u32,
    /// Runs of single keys.
    pub of_keys: HashMap<String, u32>,
    /// Runs of single tasks.
    pub of_tasks: HashMap<String, u32>,
    /// Milliseconds of waiting that are worth one level of priority.
    pub aging_ms: u64,
}

impl QueueLimits {
    /// The limits of these settings, for a runtime of this shape.
    pub fn of(settings: &Settings, plan: &RuntimePlan) -> Self {
        let queue = &settings.queue;
        let own = |key: &prime_settings::ApiKey| Some((key.name.clone(), key.running_max?));
        Self {
            turns_max: plan.cells as u64 * u64::from(plan.in_flight_max),
            running_max: queue.running_max,
            key_running_max: queue.key_running_max,
            of_keys: settings.server.keys.iter().filter_map(own).collect(),
            of_tasks: queue
                .tasks
                .iter()
                .map(|(task, limits)| (task.clone(), limits.running_max))
                .collect(),
            aging_ms: queue.aging_ms,
        }
    }

    /// Most runs of an owner.
    pub fn of_key(&self, owner: &str) -> u32 {
        self.of_keys.get(owner).copied().unwrap_or(self.key_running_max)
    }

    /// Most runs of a task.
    pub fn of_task(&self, task: &str) -> u32 {
        self.of_tasks.get(task).copied().unwrap_or_default()
    }
}
