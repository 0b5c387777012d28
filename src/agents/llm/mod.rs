//! Agents that are language models: each asks a [`Model`](super::model::Model) with a template, and reads the answer.
//! What a model answers is never trusted: lines go through the task's machine, and everything else is read strictly.

mod coordinator;
mod engine;
mod executor;
pub mod make;
mod report;
mod verifier;

#[cfg(test)]
mod fake;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use coordinator::{CoordinatorOptions, LlmCoordinator};
pub use engine::EngineModel;
pub use executor::{ExecutorOptions, LlmExecutor};
pub use report::{Report, read_report, report_grammar};
pub use verifier::{LlmVerifier, Mode, VerifierOptions};

use super::prompt::{Prompt, Scene, TemplateError};
use super::{AgentError, Failure};
use prime_protocol::{Role, Trajectory};

/// The same for all turns of an instance: what has seen one of them has the beginning of the others.
fn affinity(trajectory: &Trajectory) -> u64 {
    let problem = trajectory.machine.problem();
    let mut hasher = DefaultHasher::new();
    problem.spec().slug.hash(&mut hasher);
    problem.input().to_string().hash(&mut hasher);
    hasher.finish()
}

/// A seed that follows from the turn, for roles that are not given one.
fn seed(trajectory: &Trajectory, line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (trajectory.counts.proposals, trajectory.stack.depth(), line).hash(&mut hasher);
    hasher.finish()
}

/// Who a role's agent of this name is in messages.
fn label(role: Role, name: &str) -> String {
    format!("{role} `{name}`")
}

/// A rendered prompt, or the failure of the agent that has the template.
fn rendered(agent: &str, prompt: &Prompt, scene: &Scene<'_>) -> Result<String, AgentError> {
    prompt.render(scene).map_err(|error: TemplateError| AgentError::new(agent, Failure::Unsupported, error.to_string()))
}

/// An answer that is not what was asked for, with its beginning.
fn malformed(agent: &str, what: &str, answer: &str) -> AgentError {
    const SHOWN: usize = 120;
    let mut shown: String = answer.chars().take(SHOWN).collect();
    if shown.len() < answer.len() {
        shown.push('…');
    }
    AgentError::new(agent, Failure::Malformed, format!("the model's answer cannot be used: {what}: {shown:?}"))
}
