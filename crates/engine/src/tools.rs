//! What every turn of a context uses.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::choice::Scratch;

/// One context's model, and buffers.
pub(super) struct Tools<'m> {
    pub(super) model: &'m LlamaModel,
    /// The tokens that end a text.
    pub(super) ends: Vec<u32>,
    pub(super) scratch: Scratch,
}

impl<'m> Tools<'m> {
    pub(super) fn new(model: &'m LlamaModel) -> Self {
        let vocabulary = model.vocab();
        let all = (0..vocabulary.n_tokens()).map(LlamaToken);
        let ends = all.filter(|token| vocabulary.is_eog(*token)).map(|token| token.0.cast_unsigned()).collect();
        Self { model, ends, scratch: Scratch::default() }
    }
}
