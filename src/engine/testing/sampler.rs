//! llama.cpp's own sampler for grammars, to compare ours with.

use std::path::Path;

use llama_cpp_2::token::LlamaToken;

use crate::engine::grammar::{Candidates, Grammar, Grammars};
use crate::engine::{EngineError, EngineSpec, ffi, model};

/// A model's vocabulary and one generation in a grammar.
pub struct GrammarSampler {
    loaded: model::Loaded,
    grammars: Grammars,
    state: Option<Grammar>,
    candidates: Candidates,
    logits: Vec<f32>,
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
        let candidates = Candidates::new(tokens);
        Ok(Self { loaded, grammars: Grammars::default(), state: None, candidates, logits: vec![0.0; tokens] })
    }

    /// Goes to the beginning of a grammar.
    ///
    /// # Errors
    /// If llama.cpp does not take it.
    pub fn start(&mut self, gbnf: &str) -> Result<(), EngineError> {
        self.state = Some(self.grammars.start(&self.loaded.model, gbnf)?);
        Ok(())
    }

    /// For each token 0 if it may come next, else `-inf`; nothing before the start.
    pub fn mask(&mut self) -> &[f32] {
        match &mut self.state {
            Some(state) => state.mask(&self.logits, &mut self.candidates),
            None => &[],
        }
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
        self.state.as_mut().map_or(Ok(()), |state| state.accept(LlamaToken(token.cast_signed())))
    }
}
