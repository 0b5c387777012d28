//! An Executor that is a language model: it is shown the turn and writes a line.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dashmap::DashMap;

use super::{affinity, label, rendered};
use crate::agents::model::{Ask, Model};
use crate::agents::prompt::{self, History, Prompt, Scene, TemplateError, Templates};
use crate::agents::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_protocol::{Role, Trajectory};

/// How an executor asks its model.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorOptions {
    /// What configuration and messages call it.
    pub name: String,
    /// The template of the prompt, by name: `executor/compact.j2`, `executor/step.j2` or a user's own.
    pub template: String,
    /// The template of the instructions that do not change from turn to turn.
    pub system: Option<String>,
    pub history: History,
    /// Whether answers are held to the task's grammar: one free line at most, then an action. Without it the last line of
    /// a free answer is taken, without blanks and backquotes round it.
    pub grammar: bool,
    /// Most tokens of an answer, at least 1. An answer that was cut is taken as it is, and its last line judged.
    pub max_tokens: u32,
    /// In place of the run's: 0 is greedy.
    pub temperature: Option<f32>,
    /// In place of the run's.
    pub top_p: Option<f32>,
    /// The user's own variables, for the templates.
    pub variables: BTreeMap<String, String>,
}

impl ExecutorOptions {
    /// As the shipped model was trained: the one-line prompt, the grammar, no history.
    pub fn compact(name: impl Into<String>, max_tokens: u32) -> Self {
        Self {
            name: name.into(),
            template: "executor/compact.j2".to_owned(),
            system: None,
            history: History::None,
            grammar: true,
            max_tokens,
            temperature: None,
            top_p: None,
            variables: BTreeMap::new(),
        }
    }

    /// For models that follow instructions: the whole task in words, the last steps, a free answer.
    pub fn step(name: impl Into<String>, max_tokens: u32) -> Self {
        Self {
            template: "executor/step.j2".to_owned(),
            history: History::Window(8),
            grammar: false,
            ..Self::compact(name, max_tokens)
        }
    }
}

/// Proposes what a model writes.
pub struct LlmExecutor {
    model: Arc<dyn Model>,
    prompt: Prompt,
    system: Option<Prompt>,
    options: ExecutorOptions,
    agent: String,
    /// Grammars by task, made once; an engine knows one it has seen by its text.
    grammars: DashMap<&'static str, Arc<str>>,
}

impl LlmExecutor {
    /// # Errors
    /// When a template does not exist or asks for a variable that executors do not have.
    pub fn new(model: Arc<dyn Model>, templates: &Templates, options: ExecutorOptions) -> Result<Self, TemplateError> {
        let prompt = templates.prompt(&options.template, Role::Executor)?;
        let system = options.system.as_deref().map(|name| templates.prompt(name, Role::Executor)).transpose()?;
        let agent = label(Role::Executor, &options.name);
        Ok(Self { model, prompt, system, options, agent, grammars: DashMap::new() })
    }
}

#[async_trait]
impl AsyncExecutor for LlmExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let options = &self.options;
        let scene = Scene { is_held: options.grammar, ..Scene::new(trajectory, options.history, &options.variables) };
        let spec = trajectory.machine.spec();
        let grammar = options
            .grammar
            .then(|| self.grammars.entry(spec.slug).or_insert_with(|| prompt::grammar(spec).into()).clone());
        let ask = Ask {
            system: self.system.as_ref().map(|system| rendered(&self.agent, system, &scene)).transpose()?,
            prompt: rendered(&self.agent, &self.prompt, &scene)?,
            grammar,
            sampling: Sampling {
                temperature: options.temperature.unwrap_or(sampling.temperature),
                top_p: options.top_p.unwrap_or(sampling.top_p),
                seed: sampling.seed,
            },
            max_tokens: options.max_tokens,
            logprobs: true,
            affinity: affinity(trajectory),
        };
        let reply = self.model.ask(ask).await.map_err(|error| AgentError { agent: self.agent.clone(), ..error })?;
        let line =
            if options.grammar { prime_lessons::action_line(&reply.text) } else { prompt::last_line(&reply.text) };
        // What comes before the line; round the line of a free answer there may be backquotes.
        let before = reply.text.rfind(line).map_or("", |at| &reply.text[..at]);
        let derivation = before.trim_end_matches('`').trim_end().to_owned();
        Ok(Proposal {
            line: line.to_owned(),
            derivation: if line.is_empty() { reply.text.trim_end().to_owned() } else { derivation },
            usage: reply.usage,
            tokens: reply.tokens,
            logprobs: reply.logprobs,
            source: reply.source,
        })
    }
}

#[cfg(test)]
mod tests;
