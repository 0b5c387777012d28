//! The limits of one key: its own, or those of all keys.

use super::api_key::ApiKey;
use super::sections::Server;
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
