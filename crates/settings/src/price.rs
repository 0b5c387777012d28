//! The price of a model's tokens. No logic but its conversion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use prime_protocol::Price;

use crate::Settings;

/// Prices of a model's tokens, per million. All prices of a configuration are in one currency, which
/// nothing depends on. Results then have a `cost`, and `run.budget.cost` limits it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Price of a million prompt tokens; 0 = free.
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub prompt: f64,
    /// Price of a million prompt tokens that the model had computed before. Omitted = the price of
    /// other prompt tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 1_000_000_000.0))]
    pub cached: Option<f64>,
    /// Price of a million completion tokens, thinking included; 0 = free.
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub completion: f64,
}

impl ModelPrice {
    /// The price as it is computed with.
    ///
    /// # Panics
    /// Never for validated settings.
    #[must_use]
    pub fn price(&self) -> Price {
        Price::per_million(self.prompt, self.cached.unwrap_or(self.prompt), self.completion)
            .expect("invariant: settings are validated")
    }
}

impl Settings {
    /// True if an engine or a pool has a price.
    #[must_use]
    pub fn has_price(&self) -> bool {
        let mut engines = self.engines.values().map(|engine| engine.price);
        let mut pools = self.pools.values().map(|pool| pool.price);
        engines.any(|price| price.is_some()) || pools.any(|price| price.is_some())
    }
}
