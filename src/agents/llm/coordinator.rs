//! A Coordinator that is a language model: it reads the verdict and names a decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{affinity, label, malformed, rendered, seed};
use crate::agents::model::{Ask, Model};
use crate::agents::prompt::{History, Prompt, Scene, TemplateError, Templates};
use crate::agents::{AgentError, AsyncCoordinator, Ruling, Sampling};
use prime_protocol::{Decision, Role, Score, Thresholds, Trajectory, Verdict};

const GRAMMAR: &str = "root ::= \"Proceed\" | \"Retry\" | \"Backtrack\"";
/// A word in the smallest pieces that tokenizers have, and an end of text.
const TOKENS_MAX: u32 = 12;

/// How a coordinator asks its model.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinatorOptions {
    /// What configuration and messages call it.
    pub name: String,
    /// The template of the prompt, by name.
    pub template: String,
    /// The template of the instructions that do not change from turn to turn.
    pub system: Option<String>,
    /// What the model is shown, and held to.
    pub thresholds: Thresholds,
    pub history: History,
    /// Whether the model is asked about clean steps (V = 0) too; otherwise they proceed.
    pub asks_when_clean: bool,
    /// 0 is greedy, and answers the same question the same way.
    pub temperature: f32,
    /// The user's own variables, for the templates.
    pub variables: BTreeMap<String, String>,
}

impl CoordinatorOptions {
    pub fn new(name: impl Into<String>, thresholds: Thresholds) -> Self {
        Self {
            name: name.into(),
            template: "coordinator/decide.j2".to_owned(),
            system: None,
            thresholds,
            history: History::Window(8),
            asks_when_clean: false,
            temperature: 0.0,
            variables: BTreeMap::new(),
        }
    }
}

/// Decides what a model names, within the limits of the thresholds.
///
/// Whatever the model says, a step with V above τ_hard does not proceed, and a step is not asked for again more than
/// `retries_max` times at one state: both become Backtrack.
pub struct LlmCoordinator {
    model: Arc<dyn Model>,
    prompt: Prompt,
    system: Option<Prompt>,
    options: CoordinatorOptions,
    agent: String,
    grammar: Arc<str>,
}

/// The decision that an answer names; blanks round it do not count.
fn read(answer: &str) -> Option<Decision> {
    match answer.trim() {
        "Proceed" => Some(Decision::Proceed),
        "Retry" => Some(Decision::Retry),
        "Backtrack" => Some(Decision::Backtrack),
        _ => None,
    }
}

/// A decision within the limits.
fn limited(decision: Decision, thresholds: Thresholds, score: Score, retries_here: u32) -> Decision {
    match decision {
        Decision::Proceed if score > thresholds.hard => Decision::Backtrack,
        Decision::Retry if retries_here >= thresholds.retries_max => Decision::Backtrack,
        decision => decision,
    }
}

impl LlmCoordinator {
    /// # Errors
    /// When a template does not exist or asks for a variable that coordinators do not have.
    pub fn new(
        model: Arc<dyn Model>,
        templates: &Templates,
        options: CoordinatorOptions,
    ) -> Result<Self, TemplateError> {
        let prompt = templates.prompt(&options.template, Role::Coordinator)?;
        let system = options.system.as_deref().map(|name| templates.prompt(name, Role::Coordinator)).transpose()?;
        let agent = label(Role::Coordinator, &options.name);
        Ok(Self { model, prompt, system, options, agent, grammar: GRAMMAR.into() })
    }
}

#[async_trait]
impl AsyncCoordinator for LlmCoordinator {
    async fn decide(&self, trajectory: &Trajectory, line: &str, verdict: &Verdict) -> Result<Ruling, AgentError> {
        let options = &self.options;
        if verdict.score == Score::ZERO && !options.asks_when_clean {
            return Ok(Decision::Proceed.into());
        }
        let scene = Scene {
            is_held: true,
            action: line,
            verdict: Some(verdict),
            thresholds: Some(options.thresholds),
            ..Scene::new(trajectory, options.history, &options.variables)
        };
        let ask = Ask {
            system: self.system.as_ref().map(|system| rendered(&self.agent, system, &scene)).transpose()?,
            prompt: rendered(&self.agent, &self.prompt, &scene)?,
            grammar: Some(Arc::clone(&self.grammar)),
            sampling: Sampling { temperature: options.temperature, top_p: 1.0, seed: seed(trajectory, line) },
            max_tokens: TOKENS_MAX,
            logprobs: false,
            affinity: affinity(trajectory),
        };
        let reply = self.model.ask(ask).await.map_err(|error| AgentError { agent: self.agent.clone(), ..error })?;
        let decision = read(&reply.text)
            .ok_or_else(|| malformed(&self.agent, "it is none of Proceed, Retry and Backtrack", &reply.text))?;
        let retries_here = trajectory.stack.top().retries;
        let decision = limited(decision, options.thresholds, verdict.score, retries_here);
        Ok(Ruling { decision, usage: reply.usage })
    }
}

#[cfg(test)]
mod tests;
