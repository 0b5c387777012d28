//! A model in an engine of this machine.

use async_trait::async_trait;

use crate::agents::model::{Ask, Model, Reply};
use crate::agents::{AgentError, Failure};
use prime_engine::{Engine, Finish, Format, Request, Sampling};
use prime_protocol::Usage;

/// Asks an engine.
pub struct EngineModel {
    engine: Engine,
    /// Whether the prompt is put into the chat template of the model's file; otherwise the model continues it.
    is_chat: bool,
}

impl EngineModel {
    /// With `is_chat` the model's file must carry a chat template: otherwise every request fails and says so.
    pub fn new(engine: Engine, is_chat: bool) -> Self {
        Self { engine, is_chat }
    }
}

/// What an engine is asked for the same.
fn request(ask: Ask, is_chat: bool) -> Request {
    let (prompt, format) = match (is_chat, ask.system) {
        (true, system) => (ask.prompt, Format::Chat { system }),
        (false, None) => (ask.prompt, Format::Raw),
        // A model that only continues has its instructions before the rest.
        (false, Some(system)) => (format!("{system}\n{}", ask.prompt), Format::Raw),
    };
    let crate::agents::Sampling { temperature, top_p, seed } = ask.sampling;
    Request {
        prompt,
        format,
        grammar: ask.grammar,
        sampling: Sampling { temperature, top_p, seed },
        max_tokens: ask.max_tokens,
        logprobs: ask.logprobs,
        ignore_end: false,
        group: ask.affinity,
    }
}

#[async_trait]
impl Model for EngineModel {
    async fn ask(&self, ask: Ask) -> Result<Reply, AgentError> {
        // The engine has sent the turn again itself where that can help.
        let failed = |error: prime_engine::EngineError| AgentError::new("model", Failure::Engine, error.to_string());
        let generation = self.engine.generate(request(ask, self.is_chat)).await.map_err(failed)?;
        Ok(Reply {
            usage: Usage { prompt: u64::from(generation.prompt_tokens), completion: generation.tokens.len() as u64 },
            text: generation.text,
            tokens: generation.tokens,
            logprobs: generation.logprobs,
            is_cut: generation.finish == Finish::Length,
            source: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(system: Option<&str>) -> Ask {
        Ask {
            system: system.map(str::to_owned),
            prompt: "two and two".to_owned(),
            grammar: Some("root ::= \"4\"".into()),
            sampling: crate::agents::Sampling { temperature: 0.5, top_p: 0.9, seed: 7 },
            max_tokens: 3,
            logprobs: true,
            affinity: 1,
        }
    }

    #[test]
    fn instructions_go_where_the_model_takes_them() {
        let chat = |system: Option<&str>| Format::Chat { system: system.map(str::to_owned) };
        for (system, is_chat, prompt, format) in [
            (None, false, "two and two", Format::Raw),
            (Some("be brief"), false, "be brief\ntwo and two", Format::Raw),
            (None, true, "two and two", chat(None)),
            (Some("be brief"), true, "two and two", chat(Some("be brief"))),
        ] {
            let request = request(ask(system), is_chat);
            assert_eq!((request.prompt.as_str(), &request.format), (prompt, &format));
            assert_eq!(request.sampling, Sampling { temperature: 0.5, top_p: 0.9, seed: 7 });
            assert_eq!((request.grammar.as_deref(), request.max_tokens), (Some("root ::= \"4\""), 3));
            assert!(request.logprobs && request.group == 1);
        }
    }
}
