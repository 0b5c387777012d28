//! What the sequences of a context share for sampling: the model, its end tokens, scratch buffers.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::sampler::Scratch;

pub(super) struct SamplingContext<'m> {
    pub(super) model: &'m LlamaModel,
    /// The end-of-generation tokens.
    pub(super) ends: Vec<u32>,
    pub(super) scratch: Scratch,
}

impl<'m> SamplingContext<'m> {
    pub(super) fn new(model: &'m LlamaModel) -> Self {
        let vocabulary = model.vocab();
        let all = (0..vocabulary.n_tokens()).map(LlamaToken);
        let ends = all
            .filter(|token| vocabulary.is_eog(*token))
            .map(|token| token.0.cast_unsigned())
            .collect();
        Self { model, ends, scratch: Scratch::default() }
    }
}
