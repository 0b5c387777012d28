//! A language model as agents see it: a prompt in, a text out. Behind it is an engine of this machine or a server.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AgentError, Sampling};
use prime_protocol::Usage;

/// What a model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The instructions that stay the same from turn to turn, for models that chat.
    pub system: Option<String>,
    /// The text to answer, or to continue for a model that only continues.
    pub prompt: String,
    /// A GBNF grammar that the answer obeys; a model that cannot be held to it answers freely.
    pub grammar: Option<Arc<str>>,
    pub sampling: Sampling,
    /// Most tokens of the answer, at least 1.
    pub max_tokens: u32,
    /// Whether ln p of the answer's tokens is wanted.
    pub logprobs: bool,
    /// The same for requests that begin alike: what has computed one of them has the beginning of the others.
    pub affinity: u64,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub text: String,
    pub usage: Usage,
    /// The answer's tokens, by the model's vocabulary, where they are known.
    pub tokens: Vec<u32>,
    /// ln p of each token of the answer, where asked for and known.
    pub logprobs: Vec<f32>,
    /// Ended by `max_tokens`.
    pub is_cut: bool,
    /// Which of several servers answered.
    pub source: Option<Arc<str>>,
}

/// Answers prompts. Dropping the future gives up the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// # Errors
    /// When there is no answer.
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError> {
        (**self).ask(ask).await
    }
}

/// Sees what a model is asked and answers.
pub type Tap = Arc<dyn Fn(&Ask, &Result<Reply, AgentError>) + Send + Sync>;

/// A model that somebody watches.
pub struct Tapped<M> {
    model: M,
    tap: Tap,
}

impl<M> Tapped<M> {
    pub fn new(model: M, tap: Tap) -> Self {
        Self { model, tap }
    }
}

#[async_trait]
impl<M: Model> Model for Tapped<M> {
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError> {
        let asked = ask.clone();
        let answer = self.model.ask(ask).await;
        (self.tap)(&asked, &answer);
        answer
    }
}
