//! Tokenizes prompts, as they are or in the chat template of the model's file.

use llama_cpp_2::model::LlamaModel;

use super::chat::{Begins, Rendered, today};
use super::kv_cache::Token;
use super::thinking_phase::ThinkingPhase;
use super::wire::Turn;
use super::{Chat, EngineError, EngineSpec, Format, model};

pub(super) struct Prompts<'m> {
    model: &'m LlamaModel,
    /// A template that cannot be used is an error of the turns that need it.
    chat: Result<Chat, EngineError>,
    /// Bytes of the longest token, to bound a prompt's tokens before it is tokenized.
    token_bytes_max: usize,
    /// Longest prompt plus generation, in tokens.
    turn_tokens_max: u32,
}

impl<'m> Prompts<'m> {
    pub(super) fn new(model: &'m LlamaModel, spec: &EngineSpec, turn_tokens_max: u32) -> Self {
        let control = model::control_tokens(model);
        Self {
            model,
            chat: Chat::read(&spec.model, &spec.template_variables, Some(control), today()),
            token_bytes_max: model::longest_token(model),
            turn_tokens_max,
        }
    }

    /// The tokens of a prompt, and what the model begins with. In a chat, the template writes all
    /// special tokens, the begin-of-text token included. None is added, and special tokens that a
    /// message names stay text.
    pub(super) fn tokens(
        &mut self,
        turn: &Turn<'_>,
    ) -> Result<(Vec<Token>, Option<ThinkingPhase>), EngineError> {
        let vocabulary = self.model.vocab();
        let rendered = match (&*turn.format, &mut self.chat) {
            (Format::Raw, _) => {
                self.check_length(turn.prompt.len())?;
                let tokens = vocabulary.tokenize(turn.prompt.as_bytes(), true, true);
                return Ok((tokens.iter().map(|token| token.0).collect(), None));
            }
            (Format::Chat { system }, Ok(chat)) => {
                chat.rendered(system.as_deref(), &turn.prompt, turn.thinking, today())?
            }
            (Format::Chat { .. }, Err(error)) => return Err(error.clone()),
        };

        let Rendered { pieces, begins } = rendered;
        self.check_length(pieces.iter().map(|piece| piece.text.len()).sum())?;
        let tokens = pieces.iter().flat_map(|piece| {
            vocabulary.tokenize(piece.text.as_bytes(), false, piece.has_special_tokens)
        });
        let tokens = tokens.map(|token| token.0).collect();

        let tokenized = |text: &str| -> Vec<Token> {
            let tokens = vocabulary.tokenize(text.as_bytes(), false, true);
            tokens.iter().map(|token| token.0).collect()
        };
        let phase = match begins {
            Begins::Answer => None,
            // Under a grammar the answer begins at once.
            Begins::Either(_) if turn.grammar.is_some() => None,
            Begins::Either(form) => Some(ThinkingPhase::unless_answered(&form, tokenized)),
            Begins::Thinking(form) => Some(ThinkingPhase::opened(&form, turn.thinking, tokenized)),
        };
        Ok((tokens, phase))
    }

    /// Refuses a text that cannot fit: tokenizing takes time that grows with the text.
    fn check_length(&self, bytes: usize) -> Result<(), EngineError> {
        let (least, limit) = (bytes / self.token_bytes_max, self.turn_tokens_max);
        if least < limit as usize {
            return Ok(());
        }
        let tokens = u32::try_from(least).unwrap_or(u32::MAX);
        Err(EngineError::PromptTooLong { tokens, limit })
    }
}
