//! Renders a prompt with the chat template of the model's file. Adds nothing of its own.

use std::borrow::Cow;

use llama_cpp_2::model::{LlamaChatMessage, LlamaModel};

use super::{EngineError, Format};

fn error(detail: impl Into<String>) -> EngineError {
    EngineError::Chat { detail: detail.into() }
}

/// The text that the model continues.
///
/// # Errors
/// [`EngineError::Chat`] when the model has no template or llama.cpp does not support it, and
/// [`EngineError::BadRequest`] for a message with a NUL byte.
pub(super) fn formatted<'p>(
    model: &LlamaModel,
    format: &Format,
    prompt: &'p str,
) -> Result<Cow<'p, str>, EngineError> {
    let Format::Chat { system } = format else { return Ok(Cow::Borrowed(prompt)) };

    // The default template, without a name: llama-cpp-2 would pass a name on as a dangling pointer.
    let template = model.chat_template(None).map_err(|_| error("its file has no chat template"))?;

    let said = system.as_deref().map(|text| ("system", text)).into_iter().chain([("user", prompt)]);
    let messages: Result<Vec<_>, _> =
        said.map(|(role, text)| LlamaChatMessage::new(role.to_owned(), text.to_owned())).collect();
    let messages = messages
        .map_err(|error| EngineError::BadRequest { detail: format!("the prompt: {error}") })?;

    // The rendered text ends where the model's answer begins.
    let text = model.apply_chat_template(&template, &messages, true);
    text.map(Cow::Owned)
        .map_err(|reason| error(format!("llama.cpp does not support its template: {reason}")))
}
