//! A coordinator that is a language model: it sees the verdict and names a decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{affinity, label, malformed, rendered, seed};
use crate::model::{CompletionRequest, Model};
use crate::prompt::{History, Prompt, PromptContext, TemplateError, Templates};
use crate::{AgentError, AsyncCoordinator, Ruling, Sampling};
use prime_protocol::{Decision, Role, Score, Thresholds, Trajectory, Verdict};
use prime_settings::Thinking;

const GRAMMAR: &str = "root ::= \"Proceed\" | \"Retry\" | \"Backtrack\"";
/// Enough for one word in the smallest tokens, and an end of text.
const TOKENS_MAX: u32 = 12;

/// The options of a coordinator that asks a model.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinatorOptions {
    /// Its name in the configuration and in messages.
    pub name: String,
    /// The name of the prompt template.
    pub template: String,
    /// The name of the system prompt's template.
    pub system: Option<String>,
    /// Shown to the model and enforced.
    pub thresholds: Thresholds,
    /// How much the model may think before its decision.
    pub thinking: Thinking,
    /// Which of the committed steps its prompts include.
    pub history: History,
    /// True to ask about clean steps (V = 0) too; otherwise they proceed.
    pub ask_on_clean_steps: bool,
    /// 0 is greedy.
    pub temperature: f32,
    /// User-defined template variables.
    pub variables: BTreeMap<String, String>,
}

impl CoordinatorOptions {
    /// The defaults: a greedy model that sees the last eight steps and is asked about unclean steps
    /// only.
    pub fn new(name: impl Into<String>, thresholds: Thresholds) -> Self {
        Self {
            name: name.into(),
            template: "coordinator/decide.j2".to_owned(),
            system: None,
            thresholds,
            thinking: Thinking::AsModel,
            history: History::Window(8),
            ask_on_clean_steps: false,
            temperature: 0.0,
            variables: BTreeMap::new(),
        }
    }
}

/// Lets a model decide within the thresholds: Proceed with V above τ_hard, and Retry after
/// `retries_max` retries in the same state, become Backtrack.
pub struct LlmCoordinator {
    model: Arc<dyn Model>,
    prompt: Prompt,
    system: Option<Prompt>,
    options: CoordinatorOptions,
    agent: String,
    grammar: Arc<str>,
}

/// The decision that a completion names, ignoring surrounding whitespace.
fn parse(answer: &str) -> Option<Decision> {
    match answer.trim() {
        "Proceed" => Some(Decision::Proceed),
        "Retry" => Some(Decision::Retry),
        "Backtrack" => Some(Decision::Backtrack),
        _ => None,
    }
}

/// Enforces the thresholds.
fn limited(
    decision: Decision,
    thresholds: Thresholds,
    score: Score,
    retries_here: u32,
) -> Decision {
    match decision {
        Decision::Proceed if score > thresholds.hard => Decision::Backtrack,
        Decision::Retry if retries_here >= thresholds.retries_max => Decision::Backtrack,
        decision => decision,
    }
}

impl LlmCoordinator {
    /// A coordinator that asks this model.
    ///
    /// # Errors
    /// A template does not exist or uses a variable that coordinators do not have.
    pub fn new(
        model: Arc<dyn Model>,
        templates: &Templates,
        options: CoordinatorOptions,
    ) -> Result<Self, TemplateError> {
        let prompt = templates.prompt(&options.template, Role::Coordinator)?;
        let system = options
            .system
            .as_deref()
            .map(|name| templates.prompt(name, Role::Coordinator))
            .transpose()?;
        let agent = label(Role::Coordinator, &options.name);
        Ok(Self { model, prompt, system, options, agent, grammar: GRAMMAR.into() })
    }
}

#[async_trait]
impl AsyncCoordinator for LlmCoordinator {
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError> {
        let options = &self.options;
        if verdict.score == Score::ZERO && !options.ask_on_clean_steps {
            return Ok(Decision::Proceed.into());
        }

        let context = PromptContext {
            is_held: true,
            action: line,
            verdict: Some(verdict),
            thresholds: Some(options.thresholds),
            ..PromptContext::new(trajectory, options.history, &options.variables)
        };

        let request = CompletionRequest {
            system: self
                .system
                .as_ref()
                .map(|system| rendered(&self.agent, system, &context))
                .transpose()?,
            thinking: options.thinking,
            grammar: Some(Arc::clone(&self.grammar)),
            sampling: Sampling {
                temperature: options.temperature,
                top_p: 1.0,
                seed: seed(trajectory, line),
            },
            max_tokens: TOKENS_MAX,
            affinity: affinity(trajectory),
            ..CompletionRequest::raw(
                trajectory.machine.spec().slug,
                rendered(&self.agent, &self.prompt, &context)?,
            )
        };

        let completion = self
            .model
            .complete(request)
            .await
            .map_err(|error| AgentError { agent: self.agent.clone(), ..error })?;

        let decision = parse(&completion.text).ok_or_else(|| {
            malformed(&self.agent, "it is not Proceed, Retry or Backtrack", &completion.text)
        })?;

        // The model's word is advice: the run's thresholds hold for every coordinator.
        let retries_here = trajectory.stack.top().retries;
        let decision = limited(decision, options.thresholds, verdict.score, retries_here);
        Ok(Ruling { usage: completion.usage, ..decision.into() })
    }
}

#[cfg(test)]
mod tests;
