//! A language model as agents see it: a prompt in, a completion out, from a local engine or a
//! server.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AgentError, Sampling};
use prime_protocol::Usage;

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    /// The slug of the step's task, by which one of several models is chosen.
    pub task: &'static str,
    /// The system prompt: the instructions that stay the same from turn to turn.
    pub system: Option<String>,
    /// The user message of a chat model; the text to continue for a completion model.
    pub prompt: String,
    /// A GBNF grammar that constrains the completion; ignored by a model that does not support one.
    pub grammar: Option<Arc<str>>,
    /// Lines that the completion must not end with, oldest first. Only a model in a local engine
    /// obeys them, and only with a grammar; others learn of them from the prompt.
    pub excluded: Vec<Box<str>>,
    /// Prefixes that the completion's last line must not have; obeyed by the same models.
    pub excluded_prefixes: Vec<Box<str>>,
    /// The character at which the completion stops, and which is its last one; obeyed by the same
    /// models.
    pub stop: Option<char>,
    /// Whether a newline ends the completion where the grammar permits its end; obeyed by the same
    /// models.
    pub newline_ends: bool,
    pub sampling: Sampling,
    /// Maximum tokens of the completion, at least 1.
    pub max_tokens: u32,
    /// Whether to return the log-probabilities of the completion's tokens.
    pub logprobs: bool,
    /// How many alternatives to return for the first token, with `logprobs`; only servers do.
    pub alternatives: u32,
    /// A text that is to be scored after the prompt instead of completing it; only servers of
    /// reward models do.
    pub scored: Option<String>,
    /// Equal for requests that share a prefix: a server that has computed one has the prefix of the
    /// others cached.
    pub affinity: u64,
}

impl CompletionRequest {
    /// A prompt to be continued greedily, without a grammar.
    pub fn raw(task: &'static str, prompt: impl Into<String>) -> Self {
        Self {
            task,
            system: None,
            prompt: prompt.into(),
            grammar: None,
            excluded: Vec::new(),
            excluded_prefixes: Vec::new(),
            stop: None,
            newline_ends: false,
            sampling: Sampling { temperature: 0.0, top_p: 1.0, seed: 0 },
            max_tokens: 1,
            logprobs: false,
            alternatives: 0,
            scored: None,
            affinity: 0,
        }
    }
}

/// What a model wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    pub text: String,
    pub usage: Usage,
    /// Token ids in the model's vocabulary, where known.
    pub tokens: Vec<u32>,
    /// ln p of each token, if requested and known.
    pub logprobs: Vec<f32>,
    /// Likely first tokens, each with its ln p, if requested and known.
    pub alternatives: Vec<(String, f32)>,
    /// The score of the text that was to be scored; finite.
    pub score: Option<f64>,
    /// Whether it was ended by `max_tokens`.
    pub is_truncated: bool,
    /// Whether every text of the grammar ends with an excluded line, so that there was nothing left
    /// to write.
    pub is_exhausted: bool,
    /// Whether it was ended by `stop`.
    pub is_stopped: bool,
    /// Which of several servers answered.
    pub source: Option<Arc<str>>,
}

/// Completes prompts. Dropping the future cancels the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// # Errors
    /// There is no completion.
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        (**self).complete(request).await
    }
}

/// Observes every request to a model and its result.
pub type Tap = Arc<dyn Fn(&CompletionRequest, &Result<Completion, AgentError>) + Send + Sync>;

/// A model with a [`Tap`].
pub struct TappedModel<M> {
    model: M,
    tap: Tap,
}

impl<M> TappedModel<M> {
    pub fn new(model: M, tap: Tap) -> Self {
        Self { model, tap }
    }
}

#[async_trait]
impl<M: Model> Model for TappedModel<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        // The model consumes the request, which the tap sees together with the result.
        let seen = request.clone();
        let result = self.model.complete(request).await;
        (self.tap)(&seen, &result);
        result
    }
}
