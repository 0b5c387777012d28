//! Agents: the traits Executor, Verifier and Coordinator, and the implementations that a configuration can name. Agents
//! know tasks and the protocol; they know no actors and hold no run state.

mod adaptive;
pub mod conformance;
mod ensemble;
mod escalation;
mod factory;
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
mod rules;
mod scripted;
mod threshold;
pub mod upstream;

use std::sync::Arc;

use async_trait::async_trait;

use prime_bench::tasks::Kinds;
use prime_protocol::{Decision, Trajectory, Usage, Verdict};

pub use adaptive::AdaptiveCoordinator;
pub use ensemble::{EnsembleMember, EnsembleVerifier};
pub use escalation::{EscalatingExecutor, NamedExecutor};
pub use failure::{AgentError, Failure};
pub use recording::{Recording, RecordingError, RecordingExecutor};
pub use reference::ReferenceExecutor;
pub use reference_verifier::ReferenceVerifier;
pub use registry::{AgentSet, Names, Resources};
pub use replay::ReplayExecutor;
pub use rules::RulesVerifier;
pub use scripted::ScriptedExecutor;
pub use threshold::ThresholdCoordinator;

/// Sampling parameters of a proposal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    pub top_p: f32,
    /// The turn's seed: the same turn of the same run always has the same one.
    pub seed: u64,
}

/// A proposed step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The action line.
    pub line: String,
    /// The text before the action line.
    pub derivation: String,
    pub usage: Usage,
    /// Token ids of the completion in the model's vocabulary, where known.
    pub tokens: Vec<u32>,
    /// ln p of each token of the completion, where known.
    pub logprobs: Vec<f32>,
    /// Which of several models or servers produced it.
    pub source: Option<Arc<str>>,
}

/// A coordinator's decision and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    pub decision: Decision,
    /// Tokens that a model spent on it.
    pub usage: Usage,
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        Self { decision, usage: Usage::default() }
    }
}

/// Proposes the next step of a trajectory.
#[async_trait]
pub trait Executor: Send + Sync {
    /// # Errors
    /// No proposal could be made.
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError>;

    /// The same for one that never waits: no future is made for such a turn. `None`: it is to be asked the other way.
    fn propose_at_once(&self, _: &Trajectory, _: Sampling) -> Option<Result<Proposal, AgentError>> {
        None
    }
}

/// Scores the violations of a proposed step, which the machine holds as its candidate or has rejected.
#[async_trait]
pub trait Verifier: Send + Sync {
    /// The kinds of constraints that it checks; empty if it checks nothing.
    fn kinds(&self) -> Kinds;

    /// Whether it judges constraints that a client wrote in natural language.
    fn reads_words(&self) -> bool {
        false
    }

    /// # Errors
    /// No verdict could be given.
    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError>;

    /// The same for one that never waits. `None`: it is to be asked the other way.
    fn judge_at_once(&self, _: &Trajectory, _: &str) -> Option<Result<Verdict, AgentError>> {
        None
    }
}

/// Decides whether a judged step is committed, retried or dropped.
#[async_trait]
pub trait Coordinator: Send + Sync {
    /// # Errors
    /// No decision could be made.
    async fn decide(&self, trajectory: &Trajectory, line: &str, verdict: &Verdict) -> Result<Ruling, AgentError>;

    /// The same for one that never waits. `None`: it is to be asked the other way.
    fn decide_at_once(&self, _: &Trajectory, _: &str, _: &Verdict) -> Option<Result<Ruling, AgentError>> {
        None
    }
}
