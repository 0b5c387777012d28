//! llama.cpp's own sampler for grammars, to compare ours with.

use std::path::Path;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::{EngineError, EngineSpec, ffi, model};

/// A model's vocabulary and one generation in a grammar.
pub struct GrammarSampler {
    loaded: model::Loaded,
    state: Option<LlamaSampler>,
    candidates: LlamaTokenDataArray,
    mask: Vec<f32>,
}

fn lost(error: impl std::fmt::Display) -> EngineError {
    EngineError::Grammar { detail: error.to_string() }
}

impl GrammarSampler {
    /// With the vocabulary of a model.
    ///
    /// # Errors
    /// Those of loading the model.
    pub fn new(path: &Path) -> Result<Self, EngineError> {
        ffi::keep_logs(ffi::Stderr::Silent);
        let loaded = model::load(&EngineSpec { model: path.to_owned(), ..EngineSpec::default() })?;
        let tokens = usize::try_from(loaded.model.vocab().n_tokens()).unwrap_or(0);
        let candidates = LlamaTokenDataArray::new(Vec::with_capacity(tokens), false);
        Ok(Self { loaded, state: None, candidates, mask: vec![0.0; tokens] })
    }

    /// Goes to the beginning of a grammar.
    ///
    /// # Errors
    /// If llama.cpp does not take it.
    pub fn start(&mut self, gbnf: &str) -> Result<(), EngineError> {
        self.state = Some(LlamaSampler::grammar(&self.loaded.model, gbnf, "root").map_err(lost)?);
        Ok(())
    }

    /// For each token 0 if it may come next, else `-inf`; nothing before the start.
    pub fn mask(&mut self) -> &[f32] {
        let Some(state) = &mut self.state else { return &[] };
        self.candidates.selected = None;
        self.candidates.sorted = false;
        self.candidates.data.clear();
        let tokens = (0_i32..).zip(&self.mask);
        self.candidates.data.extend(tokens.map(|(id, _)| LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)));
        state.apply(&mut self.candidates);
        self.mask.fill(f32::NEG_INFINITY);
        for candidate in &self.candidates.data {
            let place = usize::try_from(candidate.id().0).ok().and_then(|id| self.mask.get_mut(id));
            if let Some(place) = place {
                *place = candidate.logit();
            }
        }
        &self.mask
    }

    /// The tokens that may come next, in ascending order; none before the start.
    pub fn permitted(&mut self) -> Vec<u32> {
        (0..).zip(self.mask()).filter(|(_, logit)| logit.is_finite()).map(|(id, _)| id).collect()
    }

    /// Moves on by a permitted token that does not end the text.
    ///
    /// # Errors
    /// If the token is not permitted.
    pub fn accept(&mut self, token: u32) -> Result<(), EngineError> {
        let state = self.state.as_mut();
        state.map_or(Ok(()), |state| state.try_accept(LlamaToken(token.cast_signed())).map_err(lost))
    }
}
