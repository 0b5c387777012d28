//! A preset: a named set of run options. No logic here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::{StrategyName, VoteName};
use prime_protocol::Role;

/// One entry of `presets`. Omitted options stay as configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Preset {
    /// Overrides `run.strategy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StrategyName")]
    pub strategy: Option<StrategyName>,
    /// Overrides `run.vote`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VoteName")]
    pub vote: Option<VoteName>,
    /// Overrides `run.speculate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub speculate: Option<bool>,
    /// Overrides `run.fanout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 256))]
    pub fanout: Option<u32>,
    /// Overrides `run.max_rounds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    pub max_rounds: Option<u32>,
    /// Overrides `run.temperature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Overrides `run.top_p`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub top_p: Option<f64>,
    /// Overrides `agents.executor.implementation`. Not limited by `server.allow_executors`, because
    /// only the operator defines presets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "executor"))]
    pub executor: Option<String>,
    /// Overrides `agents.verifier.implementation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "verifier"))]
    pub verifier: Option<String>,
    /// Overrides `agents.coordinator.implementation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "coordinator"))]
    pub coordinator: Option<String>,
    /// Limits of a run, each at most that of `run.budget`.
    #[serde(skip_serializing_if = "PresetBudget::is_empty")]
    pub budget: PresetBudget,
}

/// `budget` of a preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PresetBudget {
    /// Maximum proposals, accepted or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1, max = 1_000_000_000_000_u64))]
    pub steps: Option<u64>,
    /// Maximum tokens, prompt and completion together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1, max = 1_000_000_000_000_000_u64))]
    pub tokens: Option<u64>,
    /// Maximum completion tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1, max = 1_000_000_000_000_000_u64))]
    pub completion_tokens: Option<u64>,
    /// Maximum cost, in the currency of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(max = 1_000_000_000.0), extend("exclusiveMinimum" = 0.0))]
    pub cost: Option<f64>,
    /// Maximum wall-clock time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1, max = 2_592_000_000_u64))]
    pub wall_ms: Option<u64>,
}

impl Preset {
    /// The agent that it selects for a role.
    #[must_use]
    pub fn agent(&self, role: Role) -> Option<&str> {
        match role {
            Role::Executor => self.executor.as_deref(),
            Role::Verifier => self.verifier.as_deref(),
            Role::Coordinator => self.coordinator.as_deref(),
        }
    }
}

impl PresetBudget {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
