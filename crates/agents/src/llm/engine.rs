//! A model in a local engine.

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::{Completion, CompletionRequest, ExactPrompt, Model};
use crate::thought::{estimated_tokens, only_thought};
use crate::{AgentError, Failure};
use prime_engine::{
    EXCLUDED_BYTES_MAX, EXCLUDED_LINES_MAX, Engine, EngineError, Finish, Following, Format,
    Progress, Request, Sampling, Sent, Thinking, Watch,
};
use prime_protocol::Usage;
use prime_roles::live::{self, Listener, PromptRead, Writing};

/// A model in a local engine.
pub struct EngineModel {
    engine: Engine,
    /// True to apply the chat template of the model's file; otherwise the model continues the
    /// prompt.
    is_chat: bool,
    /// Shares no cached prefix with models of other spaces.
    space: u64,
}

impl EngineModel {
    /// With `is_chat` the model's file must have a chat template; otherwise every request fails
    /// with a message that says so.
    pub fn new(engine: Engine, is_chat: bool) -> Self {
        Self { engine, is_chat, space: 0 }
    }

    /// The same, in another space of the engine's cache ([`Request::space`]).
    #[must_use]
    pub(crate) fn in_space(self, space: u64) -> Self {
        Self { space, ..self }
    }
}

/// Translates a request for the engine.
fn engine_request(request: CompletionRequest, is_chat: bool) -> Request {
    let (prompt, format) = match (is_chat, request.system) {
        (true, system) => (request.prompt, Format::Chat { system }),
        (false, None) => (request.prompt, Format::Raw),
        // A completion model knows no roles: the system prompt goes first.
        (false, Some(system)) => (format!("{system}\n{}", request.prompt), Format::Raw),
    };

    // The engine excludes lines by means of the grammar: without one, nothing can be excluded.
    let crate::Sampling { temperature, top_p, seed } = request.sampling;
    Request {
        prompt,
        format,
        excluded: if request.grammar.is_some() { newest(request.excluded) } else { Vec::new() },
        excluded_prefixes: if request.grammar.is_some() {
            request.excluded_prefixes
        } else {
            Vec::new()
        },
        // A chat model could not continue after a value: it answers the whole prompt.
        stop: request.stop.filter(|_| request.grammar.is_some() && !is_chat),
        newline_ends: request.newline_ends && request.grammar.is_some(),
        thinking: match request.thinking {
            prime_settings::Thinking::AsModel => Thinking::AsModel,
            prime_settings::Thinking::Off => Thinking::Off,
            prime_settings::Thinking::AtMost(tokens) => Thinking::AtMost(tokens),
        },
        grammar: request.grammar,
        sampling: Sampling { temperature, top_p, seed },
        max_tokens: request.max_tokens,
        logprobs: request.logprobs,
        ignore_end: false,
        group: request.affinity,
        space: 0,
    }
}

/// Passes on the reports of an engine.
fn watch(listener: Listener) -> Watch {
    Arc::new(move |Progress { text, prompt_tokens: tokens, prompt_computed: read }| {
        listener.writes(Writing { text, prompt: Some(PromptRead { read, tokens }) });
    })
}

/// Translates an error. The engine has already retried where that can help.
#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn agent_error(error: EngineError) -> AgentError {
    let failure = if matches!(error, EngineError::PromptTooLong { .. }) {
        Failure::TooLong
    } else {
        Failure::Engine
    };
    AgentError { is_transient: false, ..AgentError::new("model", failure, error.to_string()) }
}

/// The newest of the lines, as many as an engine accepts. A line that is left out may be written
/// again.
fn newest(mut lines: Vec<Box<str>>) -> Vec<Box<str>> {
    let mut bytes = 0;
    let fitting = lines.iter().rev().take(EXCLUDED_LINES_MAX).take_while(|line| {
        bytes += line.len();
        bytes <= EXCLUDED_BYTES_MAX
    });

    let count = fitting.count();
    lines.split_off(lines.len() - count)
}

#[async_trait]
impl Model for EngineModel {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let (is_free, with_exact) = (request.grammar.is_none(), request.with_exact);
        let asked = Request { space: self.space, ..engine_request(request, self.is_chat) };
        let following = Following { with_sent: with_exact, watch: live::listener().map(watch) };
        let generation =
            self.engine.generate_followed(asked, following).await.map_err(agent_error)?;

        let is_empty = generation.tokens.is_empty();
        let thought_tokens = u64::from(generation.thought_tokens);
        let mut usage = Usage {
            cached: u64::from(generation.cached_tokens),
            reasoning: thought_tokens,
            ..Usage::new(
                u64::from(generation.prompt_tokens),
                generation.tokens.len() as u64 + thought_tokens,
            )
        };

        let (mut text, mut reasoning) = (generation.text, generation.thought);
        // A model may mark its thinking in a way that its template does not show.
        if is_free && self.is_chat && reasoning.is_empty() {
            let split = prime_reasoning::split(&text);
            if !split.thought.is_empty() {
                let (thought, said) = (split.thought.clone(), split.said.trim().to_owned());
                usage.reasoning = estimated_tokens(usage.completion, &thought, &said);
                (text, reasoning) = (said, thought);
            }
        }
        if text.trim().is_empty() && !reasoning.is_empty() && generation.finish != Finish::Exhausted
        {
            let is_truncated = generation.finish == Finish::Length;
            let reason = only_thought(usage.completion, is_truncated);
            let error = AgentError::new("model", Failure::Malformed, reason).costing(usage);
            // The same turn would be thought about in the same way again.
            return Err(AgentError { is_transient: false, ..error });
        }

        Ok(Completion {
            usage,
            text,
            reasoning,
            tokens: generation.tokens,
            logprobs: generation.logprobs,
            is_truncated: generation.finish == Finish::Length,
            // In the middle of a text, only this text has reached its end; another might not.
            is_exhausted: generation.finish == Finish::Exhausted && is_empty,
            is_stopped: generation.finish == Finish::Stopped,
            exact: generation.sent.map(|sent| {
                let Sent { text, tokens } = *sent;
                ExactPrompt { text, tokens }
            }),
            ..Completion::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion_request(system: Option<&str>) -> CompletionRequest {
        CompletionRequest {
            system: system.map(str::to_owned),
            grammar: Some("root ::= \"4\"".into()),
            excluded: vec!["4".into()],
            excluded_prefixes: vec!["5".into()],
            stop: Some('?'),
            sampling: crate::Sampling { temperature: 0.5, top_p: 0.9, seed: 7 },
            max_tokens: 3,
            logprobs: true,
            affinity: 1,
            ..CompletionRequest::raw("n-queens", "two and two")
        }
    }

    #[test]
    fn the_system_prompt_goes_where_the_model_expects_it() {
        let chat = |system: Option<&str>| Format::Chat { system: system.map(str::to_owned) };
        for (system, is_chat, prompt, format) in [
            (None, false, "two and two", Format::Raw),
            (Some("be brief"), false, "be brief\ntwo and two", Format::Raw),
            (None, true, "two and two", chat(None)),
            (Some("be brief"), true, "two and two", chat(Some("be brief"))),
        ] {
            let request = engine_request(completion_request(system), is_chat);
            assert_eq!((request.prompt.as_str(), &request.format), (prompt, &format));
            assert_eq!(request.sampling, Sampling { temperature: 0.5, top_p: 0.9, seed: 7 });
            assert_eq!(
                (request.grammar.as_deref(), request.max_tokens),
                (Some("root ::= \"4\""), 3)
            );
            assert!(request.logprobs && request.group == 1);
            assert_eq!(
                (request.excluded, request.excluded_prefixes),
                (vec!["4".into()], vec!["5".into()])
            );
        }

        let free =
            engine_request(CompletionRequest { grammar: None, ..completion_request(None) }, false);
        assert!(
            free.excluded.is_empty() && free.excluded_prefixes.is_empty(),
            "without a grammar nothing can be excluded"
        );
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_too_long_for_ever() {
        let error = agent_error(EngineError::PromptTooLong { tokens: 900, limit: 512 });
        assert_eq!((error.failure, error.is_transient), (Failure::TooLong, false));
        assert!(
            error.reason.contains("900 tokens") && error.reason.contains("context_tokens"),
            "{error}"
        );

        let error = agent_error(EngineError::BadRequest { detail: "top_p".to_owned() });
        assert_eq!((error.failure, error.is_transient), (Failure::Engine, false));
    }

    #[test]
    fn an_engine_gets_as_many_excluded_lines_as_it_takes() {
        let many: Vec<Box<str>> =
            (0..EXCLUDED_LINES_MAX + 2).map(|place| place.to_string().into()).collect();
        assert_eq!(newest(many.clone()), many[2..]);

        let long: Vec<Box<str>> =
            ["a", "b", "c"].map(|text| text.repeat(EXCLUDED_BYTES_MAX / 2).into()).to_vec();
        assert_eq!(newest(long.clone()), long[1..]);
        assert!(
            newest(vec!["a".repeat(EXCLUDED_BYTES_MAX + 1).into()]).is_empty()
                && newest(Vec::new()).is_empty()
        );
    }
}
