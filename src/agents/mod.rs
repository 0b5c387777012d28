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
mod rules;
mod scripted;
mod threshold;
pub mod upstream;

use std::sync::Arc;

use async_trait::async_trait;

use prime_bench::tasks::Kinds;
use prime_protocol::{Decision, Trajectory, Usage, Verdict};

pub use adaptive::AdaptiveCoordinator;
pub use ensemble::{EnsembleVerifier, Member};
pub use escalation::{EscalatingExecutor, Named};
pub use failure::{AgentError, Failure};
pub use recording::{Recording, RecordingError, RecordingExecutor};
pub use reference::ReferenceExecutor;
pub use reference_verifier::ReferenceVerifier;
pub use registry::{AgentSet, Names, Resources};
pub use replay::ReplayExecutor;
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

/// Proposes the next step of a trajectory.
#[async_trait]
pub trait Executor: Send + Sync {
    /// # Errors
    /// When no proposal could be made.
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError>;

    /// The same for one that never waits: no future is made for such a turn. `None`: it is to be asked the other way.
    fn propose_at_once(&self, _: &Trajectory, _: Sampling) -> Option<Result<Proposal, AgentError>> {
        None
    }
}

/// Scores the violations of a proposed step: the machine holds it as its candidate, or has refused it.
#[async_trait]
pub trait Verifier: Send + Sync {
    /// The constraint kinds that it looks at; empty for one that checks nothing.
    fn kinds(&self) -> Kinds;

    /// Whether it judges constraints that a client wrote in words.
    fn reads_words(&self) -> bool {
        false
    }

    /// # Errors
    /// When no verdict could be given.
    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError>;

    /// The same for one that never waits. `None`: it is to be asked the other way.
    fn judge_at_once(&self, _: &Trajectory, _: &str) -> Option<Result<Verdict, AgentError>> {
        None
    }
}

/// Decides what happens to a judged step.
#[async_trait]
pub trait Coordinator: Send + Sync {
    /// # Errors
    /// When no decision could be made.
    async fn decide(&self, trajectory: &Trajectory, line: &str, verdict: &Verdict) -> Result<Ruling, AgentError>;

    /// The same for one that never waits. `None`: it is to be asked the other way.
    fn decide_at_once(&self, _: &Trajectory, _: &str, _: &Verdict) -> Option<Result<Ruling, AgentError>> {
        None
    }
}
