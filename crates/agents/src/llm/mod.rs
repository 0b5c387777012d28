//! Agents that are language models: each renders a template, asks a [`Model`](super::model::Model)
//! and parses the completion. Model output is never trusted: lines go through the task's machine,
//! and everything else is parsed strictly.

mod adapted;
mod avoided_prefixes;
mod by_task;
mod coordinator;
mod engine;
mod executor;
mod executor_options;
mod executor_prompts;
pub mod from_settings;
mod rating;
mod read_completion;
mod reads;
mod report;
mod verifier;

#[cfg(test)]
mod exclusions_tests;
#[cfg(test)]
mod fake_model;

use std::hash::{DefaultHasher, Hash, Hasher};

pub use adapted::{AdaptedModel, Choice, ServedModel};
pub use by_task::{Learnt, ModelByTask};
pub use coordinator::{CoordinatorOptions, LlmCoordinator};
pub use engine::EngineModel;
pub use executor::LlmExecutor;
pub use executor_options::ExecutorOptions;
pub use executor_prompts::{Asked, ExecutorPrompts};
pub use report::{Report, parse_report, report_grammar};
pub use verifier::{LlmVerifier, VerdictFormat, VerifierOptions};

use super::prompt::{Prompt, PromptContext, TemplateError};
use super::{AgentError, Failure};
use prime_protocol::{Role, Trajectory};

/// The affinity of a request: equal for all turns of an instance, because their prompts share a
/// prefix.
fn affinity(trajectory: &Trajectory) -> u64 {
    let problem = trajectory.machine.problem();
    let mut hasher = DefaultHasher::new();
    problem.spec().slug.hash(&mut hasher);
    problem.input().to_string().hash(&mut hasher);
    hasher.finish()
}

/// A seed derived from the turn, for roles that get none.
fn seed(trajectory: &Trajectory, line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (trajectory.counts.proposals, trajectory.stack.depth(), line).hash(&mut hasher);
    hasher.finish()
}

/// How messages name a role's agent.
fn label(role: Role, name: &str) -> String {
    format!("{role} `{name}`")
}

/// Renders a prompt; an error names the agent.
fn rendered(
    agent: &str,
    prompt: &Prompt,
    context: &PromptContext<'_>,
) -> Result<String, AgentError> {
    prompt.render(context).map_err(|error: TemplateError| {
        AgentError::new(agent, Failure::Unsupported, error.to_string())
    })
}

/// An unusable completion, quoted in part.
fn malformed(agent: &str, problem: &str, text: &str) -> AgentError {
    const SHOWN: usize = 120;
    // A runaway completion would fill the log.
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    AgentError::new(
        agent,
        Failure::Malformed,
        format!("the model's answer is unusable: {problem}: {shown:?}"),
    )
}
