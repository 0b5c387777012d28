//! A language model as agents see it: a prompt in, a completion out, from a local engine or a
//! server.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AgentError, Sampling};
use prime_protocol::Usage;
use prime_settings::Thinking;

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    /// The slug of the step's task, by which one of several models is chosen.
    pub task: &'static str,
    /// The system prompt: the instructions that stay the same from turn to turn.
    pub system: Option<String>,
    /// The user message of a chat model; the text to continue for a completion model.
    pub prompt: String,
    /// How much the model may think before it answers.
    pub thinking: Thinking,
    /// A GBNF grammar that constrains the completion; ignored by a model that does not support one.
    pub grammar: Option<Arc<str>>,
    /// A regular expression that the action line of a free answer matches as a whole: a server that
    /// takes a JSON Schema is asked for an object that has such a line.
    pub line_form: Option<Arc<str>>,
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
    /// Is told what the model writes while it writes it.
    pub listener: Option<Listener>,
}

/// A part of a completion, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Thinking.
    Thought(&'a str),
    /// A part of the answer.
    Text(&'a str),
    /// What was written so far does not count: the request is sent again.
    Restarted,
}

/// Told what a model writes, part by part, in order. It is called on the thread of the connection,
/// so it must return quickly and must not panic. What it hears is what a model or server wrote:
/// hostile until cleaned.
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(Written<'_>) + Send + Sync>);

impl Listener {
    /// A listener that calls `hear`.
    pub fn new(hear: impl Fn(Written<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Tells it.
    pub fn tell(&self, written: Written<'_>) {
        (self.0)(written);
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl PartialEq for Listener {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl CompletionRequest {
    /// A prompt to be continued greedily, without a grammar.
    pub fn raw(task: &'static str, prompt: impl Into<String>) -> Self {
        Self {
            task,
            system: None,
            prompt: prompt.into(),
            thinking: Thinking::AsModel,
            grammar: None,
            line_form: None,
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
            listener: None,
        }
    }
}

/// What a model wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    pub text: String,
    /// What the model thought before `text`; empty if nothing is known of it.
    pub reasoning: String,
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

    /// Whether it holds its completions to the grammar of a request.
    fn applies_grammars(&self) -> bool {
        true
    }
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        (**self).complete(request).await
    }

    fn applies_grammars(&self) -> bool {
        (**self).applies_grammars()
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

    fn applies_grammars(&self) -> bool {
        self.model.applies_grammars()
    }
}
