//! Typed configuration: merges layers of sources into one validated [`Settings`].
//!
//! Precedence, lowest first: the embedded `config/default.toml`, each `--config FILE` in order,
//! `PRIME__SECTION__KEY=value` in the environment, `--set section.key=value`. A field's doc comment
//! is its entry in the reference (`docs/configuration.md`), and its `range` attribute is what is
//! validated.
//!
//! This module opens no model, socket or device and does not read the environment itself: whether a
//! value is *usable* is up to the part that uses it.

#![warn(missing_docs)]

mod adapters;
mod agents;
mod api_key;
mod approve;
mod check;
mod choosable;
mod cron;
mod definitions;
mod engine;
mod engine_names;
mod environment;
mod error;
mod implementation;
mod key_limits;
mod layer_count;
mod layers;
mod load;
mod locator;
mod log;
mod needed;
mod own_task;
mod preset;
mod price;
mod program;
mod queue;
mod reference;
mod references;
mod resolve;
mod schedule;
mod schema;
mod schema_value;
mod search;
mod sections;
mod thinking;
mod uploads;
mod upstreams;
mod webhook;

pub use adapters::AgentAdapters;
pub use agents::{
    AdaptiveOptions, Agents, ChoicesName, CoordinatorAgent, DeriveName, Ensemble, Escalation,
    ExecutorAgent, FeedbackName, HistoryName, Split, VerdictName, VerifierAgent, ViewName,
};
pub use api_key::{ApiKey, KeyHash, KeyHashError, is_name};
pub use approve::{ApprovalRule, ApproveElse};
pub use cron::Cron;
pub use definitions::{BUILT_IN, Defined, Definitions, Template};
pub use engine::{Engine, KvCache, ModelMissing, ModelSource};
pub use engine_names::{EngineNames, first_that_knows};
pub use environment::read_environment;
pub use error::SettingsError;
pub use implementation::{
    Backing, CoordinatorImplementation, ExecutorImplementation, Implementation, ImplementationInfo,
    VerifierImplementation, implementation, implementations,
};
pub use layer_count::{CpuExperts, GpuLayers};
pub use load::{DEFAULT_TOML, default_section};
pub use log::{Log, LogFormat, LogLevel};
pub use own_task::OwnTask;
pub use preset::{Preset, PresetBudget};
pub use price::ModelPrice;
pub use prime_engine::{Device, DeviceError, FlashAttention, Isolation, KvPool};
pub use program::Program;
pub use queue::{Queue, TaskQueue};
pub use reference::reference_markdown;
pub use resolve::{Agent, ListedAgent, RoleOptions};
pub use schedule::{Missed, Schedule, Timezone};
pub use search::{
    AheadOptions, BeamOptions, DiversityOptions, GroupOptions, GroupSize, ParticleFilterOptions,
    SeedChoice, StrategyName, UctOptions, VoteName,
};
pub use sections::{Budget, Placement, PromptsName, Reward, Run, Runtime, Server, Settings};
pub use thinking::Thinking;
pub use uploads::Uploads;
pub use upstreams::{Api, Dialect, Upstream, UpstreamPool};
pub use webhook::{Webhook, WebhookEvent, WebhookSecret};
