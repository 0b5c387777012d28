//! Typed configuration: layers of sources in, one checked [`Settings`] out.
//!
//! Precedence, lowest first: the shipped `config/default.toml` (embedded), each `--config FILE` in order,
//! `PRIME__SECTION__KEY=value` in the environment, `--set section.key=value`. The doc comment of a field is its
//! entry in the reference (`docs/configuration.md`), its `range` is what is checked: nothing is written twice.
//!
//! This module must not open a model, a socket or a device, and reads no environment by itself: whether a value can
//! be *used* is found out by the part that uses it.

mod agents;
mod api_key;
mod check;
mod definitions;
mod engine;
mod environment;
mod error;
mod layers;
mod load;
mod nearest;
mod preset;
mod program;
mod reference;
mod resolve;
mod schema;
mod search;
mod sections;
mod upstreams;

pub use agents::{
    AdaptiveOptions, Agents, COORDINATORS, CoordinatorAgent, EXECUTORS, Ensemble, Escalation, ExecutorAgent,
    HistoryName, Implementation, Split, VERIFIERS, VerdictName, VerifierAgent, implementations,
};
pub use api_key::{ApiKey, KeyHash, KeyHashError, is_name};
pub use definitions::{BUILT_IN, Defined, Definitions, Template};
pub use engine::{Engine, ModelMissing};
pub use environment::read_environment;
pub use error::SettingsError;
pub use load::DEFAULT_TOML;
pub use preset::{Preset, PresetBudget};
pub use prime_engine::{Device, DeviceError, Isolation, KvPool};
pub use program::Program;
pub use reference::reference_markdown;
pub use resolve::{ListedAgent, RoleOptions};
pub use search::{AheadOptions, BeamOptions, GroupOptions, GroupSize, StrategyName, VoteName};
pub use sections::{Budget, Log, LogFormat, LogLevel, Placement, Reward, Run, Runtime, Server, Settings};
pub use upstreams::{Api, Dialect, Upstream, Upstreams};
