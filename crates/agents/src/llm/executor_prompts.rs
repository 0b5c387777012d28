//! The prompts that an executor sends its model in a turn. This module asks no model: what a
//! recorded turn asked can be read without one.

use std::collections::BTreeMap;

use super::executor_options::ExecutorOptions;
use super::{label, rendered};
use crate::AgentError;
use crate::prompt::{History, Prompt, PromptContext, Shown, TemplateError, Templates};
use prime_protocol::{Role, Trajectory};
use prime_settings::DeriveName;

/// The texts of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The system prompt, if there is one.
    pub system: Option<String>,
    /// The prompt of the turn.
    pub prompt: String,
}

/// The prompts of an executor that asks a model.
pub struct ExecutorPrompts {
    /// One or more prompts, which the trajectories of a round take in turn.
    prompts: Vec<Prompt>,
    system: Option<Prompt>,
    history: History,
    /// True if a grammar constrains the completion.
    is_held: bool,
    may_reason: bool,
    shown: Shown,
    variables: BTreeMap<String, String>,
    agent: String,
}

impl ExecutorPrompts {
    /// The prompts of an executor with these options.
    ///
    /// # Errors
    /// A template does not exist or uses a variable that executors do not have.
    pub fn new(templates: &Templates, options: &ExecutorOptions) -> Result<Self, TemplateError> {
        let names = std::iter::once(&options.template).chain(&options.variants);
        Ok(Self {
            prompts: names
                .map(|name| templates.prompt(name, Role::Executor))
                .collect::<Result<_, _>>()?,
            system: options
                .system
                .as_deref()
                .map(|name| templates.prompt(name, Role::Executor))
                .transpose()?,
            history: options.history,
            is_held: options.grammar,
            may_reason: !options.grammar || options.derive != DeriveName::Never,
            shown: options.shown,
            variables: options.variables.clone(),
            agent: label(Role::Executor, &options.name),
        })
    }

    /// How messages name the executor.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The name of the template of a trajectory's prompts.
    pub fn template(&self, trajectory: &Trajectory) -> &str {
        self.prompt(trajectory).name()
    }

    fn prompt(&self, trajectory: &Trajectory) -> &Prompt {
        &self.prompts[trajectory.index as usize % self.prompts.len()]
    }

    /// The prompts for the trajectory's next step.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub fn of(&self, trajectory: &Trajectory) -> Result<Asked, AgentError> {
        let context = PromptContext {
            is_held: self.is_held,
            may_reason: self.may_reason,
            shown: self.shown,
            ..PromptContext::new(trajectory, self.history, &self.variables)
        };

        let system = self
            .system
            .as_ref()
            .map(|system| rendered(&self.agent, system, &context))
            .transpose()?;

        Ok(Asked { system, prompt: rendered(&self.agent, self.prompt(trajectory), &context)? })
    }
}
