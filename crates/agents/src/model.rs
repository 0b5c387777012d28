//! A language model as agents see it: a prompt in, a completion out, from a local engine or a
//! server.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::written::Hearer;
use super::{AgentError, Sampling};
use prime_protocol::Usage;
use prime_roles::live::{self, Exchange, Kept};
use prime_settings::Thinking;

/// An adapter at a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedAdapter {
    /// Its name at the server.
    pub name: Arc<str>,
    /// The factor with which it is applied; 1 is as trained.
    pub scale: f64,
}

/// A request to a model.
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
    /// True if a newline ends the completion where the grammar permits its end; obeyed by the same
    /// models.
    pub newline_ends: bool,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Maximum tokens of the completion, at least 1.
    pub max_tokens: u32,
    /// True to return the log-probabilities of the completion's tokens.
    pub logprobs: bool,
    /// How many alternatives to return for the first token, with `logprobs`; only servers return
    /// any.
    pub alternatives: u32,
    /// A text to be scored after the prompt, instead of completing the prompt; only servers of
    /// reward models do this.
    pub scored: Option<String>,
    /// Equal for requests that share a prefix: a server that has computed one has the prefix of the
    /// others cached.
    pub affinity: u64,
    /// The adapter that a server applies; local engines have it in their context.
    pub adapter: Option<ServedAdapter>,
    /// Receives what the model writes while it is written.
    pub hearer: Option<Hearer>,
    /// True if the completion is to include what the model was sent, if that is known.
    pub with_exact: bool,
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
            adapter: None,
            hearer: None,
            with_exact: false,
        }
    }
}

/// What a model read: the prompt in its chat template, with special tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactPrompt {
    /// The rendered text.
    pub text: String,
    /// Its token ids in the model's vocabulary.
    pub tokens: Vec<u32>,
}

/// What a model wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The answer, without the thinking.
    pub text: String,
    /// What the model thought before `text`; empty if it is not known.
    pub reasoning: String,
    /// Tokens that the completion cost.
    pub usage: Usage,
    /// Token ids in the model's vocabulary, where known.
    pub tokens: Vec<u32>,
    /// ln p of each token, if requested and known.
    pub logprobs: Vec<f32>,
    /// Likely first tokens, each with its ln p, if requested and known.
    pub alternatives: Vec<(String, f32)>,
    /// The score of the text that was to be scored; finite.
    pub score: Option<f64>,
    /// True if it was ended by `max_tokens`.
    pub is_truncated: bool,
    /// True if every text of the grammar ends with an excluded line, so that there was nothing left
    /// to write.
    pub is_exhausted: bool,
    /// True if it was ended by `stop`.
    pub is_stopped: bool,
    /// Which of several servers answered.
    pub source: Option<Arc<str>>,
    /// What the model was sent, if requested and known.
    pub exact: Option<ExactPrompt>,
}

/// Completes prompts. Dropping the future cancels the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// Completes a prompt, or scores a text after it.
    ///
    /// # Errors
    /// There is no completion.
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError>;

    /// Returns whether the grammar of a request constrains its completions.
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

/// A model whose requests go to the listener of the current turn, if it keeps them.
pub struct KeptModel<M>(pub M);

#[async_trait]
impl<M: Model> Model for KeptModel<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let listener = live::listener().filter(|listener| listener.keeps() > Kept::Nothing);
        let Some(listener) = listener else { return self.0.complete(request).await };

        let request = CompletionRequest { with_exact: true, ..request };
        let seen = request.clone();
        let result = self.0.complete(request).await;
        listener.exchanged(exchange(&seen, &result, listener.keeps()));
        result
    }

    fn applies_grammars(&self) -> bool {
        self.0.applies_grammars()
    }
}

/// A request and its result as they are kept.
fn exchange(
    request: &CompletionRequest,
    result: &Result<Completion, AgentError>,
    kept: Kept,
) -> Exchange {
    let completion = result.as_ref().ok();
    let with_tokens = |tokens: &[u32]| match kept {
        Kept::Tokens => tokens.to_vec(),
        Kept::Nothing | Kept::Text => Vec::new(),
    };
    let exact = completion.and_then(|completion| completion.exact.as_ref());
    Exchange {
        is_messages: exact.is_none(),
        prompt: exact.map_or_else(|| messages(request), |exact| exact.text.clone()),
        prompt_tokens: exact.map(|exact| with_tokens(&exact.tokens)).unwrap_or_default(),
        answer: completion.map(|completion| completion.text.clone()),
        answer_tokens: completion
            .map(|completion| with_tokens(&completion.tokens))
            .unwrap_or_default(),
        failure: result.as_ref().err().map(ToString::to_string),
    }
}

/// The messages of a request, as JSON.
fn messages(request: &CompletionRequest) -> String {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let system = request.system.as_deref().map(|system| message("system", system));
    let all: Vec<_> = system.into_iter().chain([message("user", &request.prompt)]).collect();
    serde_json::Value::from(all).to_string()
}

/// Stands between agents and their models.
pub trait Tap: Send + Sync {
    /// Sees every request to a model, and may change it.
    fn before(&self, request: &mut CompletionRequest);

    /// Sees every request as it was sent, and its result.
    fn after(&self, request: &CompletionRequest, result: &Result<Completion, AgentError>);
}

/// A model with a [`Tap`].
pub struct TappedModel<M> {
    model: M,
    tap: Arc<dyn Tap>,
}

impl<M> TappedModel<M> {
    /// The model, with this tap before it.
    pub fn new(model: M, tap: Arc<dyn Tap>) -> Self {
        Self { model, tap }
    }
}

#[async_trait]
impl<M: Model> Model for TappedModel<M> {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        // The tap is there to show what was sent.
        let mut request = CompletionRequest { with_exact: true, ..request };
        self.tap.before(&mut request);
        // The model consumes the request, which the tap sees together with the result.
        let seen = request.clone();
        let result = self.model.complete(request).await;
        self.tap.after(&seen, &result);
        result
    }

    fn applies_grammars(&self) -> bool {
        self.model.applies_grammars()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Failure;
    use prime_roles::live::{Listen, Writing};

    struct Answers(Result<Completion, AgentError>);

    #[async_trait]
    impl Model for Answers {
        async fn complete(&self, _: CompletionRequest) -> Result<Completion, AgentError> {
            self.0.clone()
        }
    }

    struct Keeps(Kept, Mutex<Vec<Exchange>>);

    impl Listen for Keeps {
        fn writes(&self, _: Writing) {}

        fn keeps(&self) -> Kept {
            self.0
        }

        fn exchanged(&self, exchange: Exchange) {
            self.1.lock().expect("unpoisoned").push(exchange);
        }
    }

    fn kept(kept: Kept, answer: Result<Completion, AgentError>) -> Vec<Exchange> {
        let keeps = Arc::new(Keeps(kept, Mutex::default()));
        let model = KeptModel(Answers(answer));
        let request = CompletionRequest {
            system: Some("be \"brief\"".to_owned()),
            ..CompletionRequest::raw("n-queens", "two\nand two")
        };
        let asking = live::within(Some(Arc::clone(&keeps) as _), model.complete(request));
        drop(futures::executor::block_on(asking));
        std::mem::take(&mut *keeps.1.lock().expect("unpoisoned"))
    }

    #[test]
    fn what_was_sent_is_kept_as_exactly_as_it_is_known() {
        let exact = ExactPrompt { text: "<|user|>two".to_owned(), tokens: vec![1, 9] };
        let local = Completion {
            text: "four".to_owned(),
            tokens: vec![4],
            exact: Some(exact),
            ..Completion::default()
        };

        assert_eq!(kept(Kept::Nothing, Ok(local.clone())), []);
        let expected = Exchange {
            prompt: "<|user|>two".to_owned(),
            answer: Some("four".to_owned()),
            ..Exchange::default()
        };
        assert_eq!(kept(Kept::Text, Ok(local.clone())), std::slice::from_ref(&expected));
        let with_tokens =
            Exchange { prompt_tokens: vec![1, 9], answer_tokens: vec![4], ..expected };
        assert_eq!(kept(Kept::Tokens, Ok(local)), [with_tokens]);

        let failed = AgentError::new("model", Failure::Engine, "it died".to_owned());
        let [exchange] = &kept(Kept::Tokens, Err(failed))[..] else { panic!("one request") };
        let messages = concat!(
            r#"[{"role":"system","content":"be \"brief\""},"#,
            r#"{"role":"user","content":"two\nand two"}]"#
        );
        assert_eq!(exchange.prompt, messages);
        assert!(exchange.is_messages && exchange.answer.is_none());
        assert!(exchange.failure.as_deref().is_some_and(|why| why.contains("it died")));
    }
}
