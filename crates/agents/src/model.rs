//! A language model as agents see it: a prompt in, a completion out. Behind it is a local engine or
//! a server.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AgentError, Sampling};
use prime_protocol::Usage;

#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    /// The slug of the step's task: of several models, the one that knows it is asked.
    pub task: &'static str,
    /// The system prompt: the instructions that stay the same from turn to turn.
    pub system: Option<String>,
    /// The user message of a chat model; the text to continue for a completion model.
    pub prompt: String,
    /// A GBNF grammar that constrains the completion; ignored by a model that does not support one.
    pub grammar: Option<Arc<str>>,
    /// Lines that the completion must not end with, oldest first. Only an engine's model heeds
    /// them, with a grammar; others learn of them from the prompt.
    pub excluded: Vec<Box<str>>,
    /// Beginnings that the completion's last line must not have; for the same models.
    pub excluded_prefixes: Vec<Box<str>>,
    /// Where the completion stops, with this character as its last one; for the same models.
    pub stop: Option<char>,
    pub sampling: Sampling,
    /// Maximum tokens of the completion, at least 1.
    pub max_tokens: u32,
    /// Whether to return the log-probabilities of the completion's tokens.
    pub logprobs: bool,
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
            sampling: Sampling { temperature: 0.0, top_p: 1.0, seed: 0 },
            max_tokens: 1,
            logprobs: false,
            affinity: 0,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    pub text: String,
    pub usage: Usage,
    /// Token ids in the model's vocabulary, where known.
    pub tokens: Vec<u32>,
    /// ln p of each token, if requested and known.
    pub logprobs: Vec<f32>,
    /// Ended by `max_tokens`.
    pub is_truncated: bool,
    /// Every text of the grammar ends with an excluded line: there is nothing left to write.
    pub is_exhausted: bool,
    /// Ended by `stop`.
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
        let seen = request.clone();
        let result = self.model.complete(request).await;
        (self.tap)(&seen, &result);
        result
    }
}
