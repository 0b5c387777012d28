//! The agents that a configuration can name: from models, from servers, from programs, from other
//! agents, and those of `prime-roles`. They know tasks and the protocol; they know no actors and
//! hold no run state.

#![warn(missing_docs)]

pub mod card;
#[cfg(test)]
mod conformance_tests;
mod ensemble;
mod escalation;
mod executor_abilities;
mod factory;
mod fair_queue;
pub mod llm;
pub mod model;
pub mod pools;
mod priced;
pub mod process;
pub mod programs;
pub mod prompt;
mod recorded;
mod recording;
pub mod registry;
pub mod task_program;
mod thought;
pub mod upstream;
pub mod written;

pub use prime_roles::{
    AdaptiveCoordinator, AgentError, AgentReply, AgentSetId, Agents, AsyncCoordinator,
    AsyncExecutor, AsyncVerifier, Basis, Coordinator, Executor, Failure, Method, Names,
    NullExecutor, Proposal, ReferenceExecutor, ReferenceVerifier, ReplayExecutor, RulesVerifier,
    Ruling, Sampling, ScriptedExecutor, ScriptedVerifier, ThresholdCoordinator, UniformExecutor,
    Verifier, conformance, null_line, null_problem,
};

pub use ensemble::{EnsembleError, EnsembleMember, EnsembleVerifier};
pub use escalation::{EscalatingExecutor, NamedExecutor, NoSamples};
pub use fair_queue::FairQueue;
pub use recorded::{
    AgentMissing, RecordedAgent, RecordedAgents, RecordedPrompts, RecordedRole, engine_need,
    file_digest, model_digest, needs_met,
};
pub use recording::{Recording, RecordingError, RecordingExecutor};
pub use registry::{AgentSet, Resources, check_usable, configured_names};
