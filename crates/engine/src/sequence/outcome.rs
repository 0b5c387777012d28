//! The result of a finished turn.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::super::kv_cache::Token;
use super::super::{EngineError, Finish, Generation, Sent};
use super::Sequence;

impl Sequence {
    /// The turn's generation.
    pub(crate) fn into_generation(
        self,
        result: Result<Finish, EngineError>,
        model: &LlamaModel,
    ) -> Result<Generation, EngineError> {
        let finish = result?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let chosen = &self.tokens[self.answer..];

        let text_of = |tokens: &[Token]| {
            // Valid UTF-8, the usual case, is taken without a copy.
            String::from_utf8(written(tokens, model, false))
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        };
        let thought = match self.answer - self.prompt {
            0 => String::new(),
            _ => prime_reasoning::thought(&text_of(&self.tokens[self.prompt..self.thought])),
        };
        let sent = self.with_sent.then(|| Box::new(self.sent(model)));

        Ok(Generation {
            text: text_of(chosen),
            thought,
            thought_tokens: count(self.answer - self.prompt),
            cached_tokens: count(self.cached),
            tokens: chosen.iter().map(|token| token.cast_unsigned()).collect(),
            logprobs: self.logprobs,
            prompt_tokens: count(self.prompt),
            finish,
            sent,
        })
    }

    /// What the model was sent.
    fn sent(&self, model: &LlamaModel) -> Sent {
        let prompt = self.prompt();
        Sent {
            text: String::from_utf8_lossy(&written(prompt, model, true)).into_owned(),
            tokens: prompt.iter().map(|token| token.cast_unsigned()).collect(),
        }
    }
}

/// The bytes of a text, with or without those of special tokens.
pub(super) fn written(tokens: &[Token], model: &LlamaModel, with_special: bool) -> Vec<u8> {
    let vocabulary = model.vocab();
    let mut bytes = Vec::with_capacity(tokens.len() * 2);
    for token in tokens {
        vocabulary.token_to_piece_into(LlamaToken(*token), &mut bytes, with_special, None);
    }
    bytes
}
