//! The limits of one key: its own, or those of all keys; and those of one task.

use super::api_key::ApiKey;
use super::sections::{Server, Settings};
use prime_protocol::Cost;

impl Server {
    fn key(&self, owner: &str) -> Option<&ApiKey> {
        self.keys.iter().find(|key| key.name == owner)
    }

    /// Maximum open runs of an owner, the name of a key.
    pub fn open_runs_max_of(&self, owner: &str) -> u32 {
        let own = self.key(owner).and_then(|key| key.open_runs_max);

        // 0 = the default: with several keys, none may take the whole queue.
        match own.unwrap_or(self.key_open_runs_max) {
            0 if self.keys.len() > 1 => self.queue_max.div_ceil(2),
            0 => self.queue_max,
            most => most,
        }
    }

    /// Maximum cost of an owner's runs of a day; `None` if it has no limit.
    ///
    /// # Panics
    /// Never for validated settings.
    pub fn cost_per_day_max_of(&self, owner: &str) -> Option<Cost> {
        let own = self.key(owner).and_then(|key| key.cost_per_day_max);
        let most = Cost::from_units(own.unwrap_or(self.key_cost_per_day_max));
        Some(most.expect("invariant: settings are validated")).filter(|most| !most.is_zero())
    }
}

impl Settings {
    /// The largest priority of a run of this owner, the name of a key.
    pub fn priority_max_of(&self, owner: &str) -> i32 {
        let own = self.server.key(owner).and_then(|key| key.priority_max);
        own.unwrap_or(self.queue.key_priority_max)
    }

    /// Maximum runs of an owner that are executed at once; `None` if there is no limit.
    pub fn running_max_of(&self, owner: &str) -> Option<u32> {
        let own = self.server.key(owner).and_then(|key| key.running_max);
        Some(own.unwrap_or(self.queue.key_running_max)).filter(|most| *most > 0)
    }

    /// Maximum runs of an owner that are accepted in a minute, and the key of the configuration
    /// that says so; `None` if there is no limit.
    pub fn runs_per_minute_of(&self, owner: &str) -> Option<(u32, String)> {
        let own = self.server.key(owner).and_then(|key| key.runs_per_minute);
        let (most, key) = match own {
            Some(most) => (most, format!("runs_per_minute of the key \"{owner}\"")),
            None => (self.queue.key_runs_per_minute, "queue.key_runs_per_minute".to_owned()),
        };
        Some((most, key)).filter(|(most, _)| *most > 0)
    }

    /// Maximum runs of a task that are executed at once; `None` if there is no limit.
    pub fn running_max_of_task(&self, task: &str) -> Option<u32> {
        self.queue.tasks.get(task).map(|limits| limits.running_max).filter(|most| *most > 0)
    }

    /// Like [`Settings::runs_per_minute_of`], for a task.
    pub fn runs_per_minute_of_task(&self, task: &str) -> Option<(u32, String)> {
        let most = self.queue.tasks.get(task).map(|limits| limits.runs_per_minute);
        let key = || format!("queue.tasks.{task}.runs_per_minute");
        most.filter(|most| *most > 0).map(|most| (most, key()))
    }
}
