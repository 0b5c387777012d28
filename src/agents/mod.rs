//! The agents: what an Executor, a Verifier and a Coordinator are, and the implementations that configuration picks
//! from. Agents know tasks and the protocol; they know nothing of actors, and hold no run.

mod adaptive;
pub mod conformance;
mod ensemble;
mod escalation;
mod failure;
pub mod llm;
pub mod model;
pub mod pools;
pub mod process;
pub mod prompt;
mod recording;
mod reference;
pub mod reference_verifier;
pub mod registry;
mod replay;
mod reply;
mod roles;
mod rules;
mod scripted;
mod threshold;
pub mod upstream;

use std::sync::Arc;

use prime_protocol::{Decision, Usage};

pub use adaptive::AdaptiveCoordinator;
pub use ensemble::{EnsembleVerifier, Member};
pub use escalation::{EscalatingExecutor, Named};
pub use failure::{AgentError, Failure};
pub use recording::{Recording, RecordingError, RecordingExecutor};
pub use reference::ReferenceExecutor;
pub use reference_verifier::ReferenceVerifier;
pub use registry::{AgentSet, Names, Resources};
pub use replay::ReplayExecutor;
pub use reply::AgentReply;
pub use roles::{AsyncCoordinator, AsyncExecutor, AsyncVerifier, Coordinator, Executor, Verifier};
pub use rules::RulesVerifier;
pub use scripted::ScriptedExecutor;
pub use threshold::ThresholdCoordinator;

/// How to draw a proposal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    pub top_p: f32,
    /// Of this turn: the same turn of the same run gets the same seed.
    pub seed: u64,
}

/// What an executor proposes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The action line.
    pub line: String,
    /// What was written before the line.
    pub derivation: String,
    pub usage: Usage,
    /// The completion's tokens, by the model's vocabulary, where the agent gives them.
    pub tokens: Vec<u32>,
    /// ln p of each token of the completion, where the agent gives them.
    pub logprobs: Vec<f32>,
    /// Who answered, where an agent asks several: an upstream, or the larger of two models.
    pub source: Option<Arc<str>>,
}

/// What a coordinator decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    pub decision: Decision,
    /// What a model spent on it.
    pub usage: Usage,
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        Self { decision, usage: Usage::default() }
    }
}
