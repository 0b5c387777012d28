//! The tokens of a prompt as a worker would send them to the model, without loading its weights.
//!
//! A short-lived child process tokenizes: llama.cpp may abort on a file that is not a model.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::chat::error;
use super::devices::ask_child_with;
use super::worker::TOKENS;
use super::worker_handle::worker_command;
use super::{EngineError, TemplateVariables, Thinking};

/// Messages for the chat template of a model's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChatMessages {
    /// A list of objects with role and content.
    pub messages: serde_json::Value,
    /// Descriptions of tools, a list.
    pub tools: Option<serde_json::Value>,
    /// Values for the template.
    pub variables: TemplateVariables,
    /// How much the model is to think.
    pub thinking: Thinking,
}

/// A token of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptToken {
    /// Its number in the vocabulary.
    pub id: u32,
    /// Its text; a part of a character may be in another token, so these may not be valid UTF-8.
    pub piece: Vec<u8>,
}

/// The tokens that the model of a file would see of `messages`. `worker` is the binary that is run;
/// the running one if absent.
///
/// # Errors
/// [`EngineError::Chat`] when the template refuses the messages, errors of the file,
/// [`EngineError::NotBuilt`] without llama.cpp, and [`EngineError::WorkerDied`] when the child
/// ends.
pub fn prompt_tokens(
    path: &Path,
    messages: &ChatMessages,
    worker: Option<&PathBuf>,
) -> Result<Vec<PromptToken>, EngineError> {
    if cfg!(not(feature = "llama")) {
        return Err(EngineError::NotBuilt);
    }
    let messages = serde_json::to_vec(messages).map_err(error)?;
    let mut command = worker_command(worker)
        .map_err(|error| EngineError::WorkerDied { detail: error.to_string() })?;
    command.arg(TOKENS).arg(path);
    // The answer of the child is a result too.
    ask_child_with::<Result<Vec<PromptToken>, EngineError>>(command, messages)?
}

/// What the child does: `engine-worker tokens MODEL`, with the messages on its standard input.
#[cfg(feature = "llama")]
pub(super) fn child(path: &Path, messages: &[u8]) -> Result<Vec<PromptToken>, EngineError> {
    use super::chat::{Chat, today};
    use super::model;

    let ChatMessages { messages, tools, variables, thinking } =
        serde_json::from_slice(messages).map_err(error)?;
    let model = model::vocabulary(path)?;
    let control = model::control_tokens(&model);
    let chat = Chat::read(path, &variables, Some(control), today())?;
    let pieces = chat.pieces(&messages, tools.as_ref(), thinking)?;

    let vocabulary = model.vocab();
    let tokens = pieces.iter().flat_map(|piece| {
        vocabulary.tokenize(piece.text.as_bytes(), false, piece.has_special_tokens)
    });
    let seen = tokens.map(|token| {
        let mut piece = Vec::new();
        vocabulary.token_to_piece_into(token, &mut piece, true, None);
        PromptToken { id: token.0.cast_unsigned(), piece }
    });
    Ok(seen.collect())
}
