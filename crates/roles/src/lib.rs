//! The three roles: what each is asked and returns ([`Executor`], [`Verifier`], [`Coordinator`]),
//! agents that fulfil them without a model, and a suite to test any agent with. Agents know tasks
//! and the protocol; they neither know actors nor hold the state of a run.

#![warn(missing_docs)]

mod adaptive;
mod agents;
mod card;
pub mod conformance;
mod failure;
pub mod live;
mod locating;
mod null_problem;
mod reference;
mod reference_verifier;
mod replay;
mod reply;
mod roles;
mod rules;
mod scripted;
mod scripted_verifier;
pub mod setback;
mod threshold;
mod uniform;

use std::sync::Arc;

use prime_protocol::{Decision, Located, Usage};

pub use prime_protocol::{Basis, Method};

pub use adaptive::AdaptiveCoordinator;
pub use agents::{AgentSetId, Agents, Names, next_agent_set_id};
pub use card::CardQuote;
pub use failure::{AgentError, Failure};
pub use locating::LocatingCoordinator;
pub use null_problem::{NullExecutor, null_line, null_problem};
pub use reference::ReferenceExecutor;
pub use reference_verifier::ReferenceVerifier;
pub use replay::ReplayExecutor;
pub use reply::AgentReply;
pub use roles::{AsyncCoordinator, AsyncExecutor, AsyncVerifier, Coordinator, Executor, Verifier};
pub use rules::RulesVerifier;
pub use scripted::ScriptedExecutor;
pub use scripted_verifier::ScriptedVerifier;
pub use threshold::ThresholdCoordinator;
pub use uniform::UniformExecutor;

/// Sampling parameters of a proposal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Nucleus sampling, above 0 to 1: tokens are drawn from the smallest set with this probability
    /// mass. 1 = all tokens.
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
    /// What the model thought before its answer; it is not part of the derivation.
    pub reasoning: String,
    /// Tokens that the proposal cost.
    pub usage: Usage,
    /// Token ids of the completion in the model's vocabulary, where known.
    pub tokens: Vec<u32>,
    /// ln p of each token of the completion, where known.
    pub logprobs: Vec<f32>,
    /// The model or server that produced it, if there are several.
    pub source: Option<Arc<str>>,
    /// Set if every line that it can write was rejected at this state, which is therefore a dead
    /// end. `line` is then empty.
    pub is_exhausted: bool,
    /// Why it may have ended before its action: its last query has no answer, or it was cut off.
    pub unfinished: Option<Box<str>>,
}

/// A coordinator's decision and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// What happens to the step.
    pub decision: Decision,
    /// Tokens that models spent on it.
    pub usage: Usage,
    /// What a locator found, if it was asked.
    pub located: Option<Box<Located>>,
}

impl From<Decision> for Ruling {
    fn from(decision: Decision) -> Self {
        Self { decision, usage: Usage::default(), located: None }
    }
}
