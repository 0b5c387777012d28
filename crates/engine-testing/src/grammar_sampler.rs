//! llama.cpp's own grammar sampler, to compare ours with.

use std::path::Path;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use prime_engine::{EngineError, EngineSpec, llama};

/// A model's vocabulary and one generation in a grammar.
pub struct GrammarSampler {
    loaded: llama::Loaded,
    state: Option<LlamaSampler>,
    candidates: LlamaTokenDataArray,
    mask: Vec<f32>,
}

impl GrammarSampler {
    /// Loads a model for its vocabulary.
    ///
    /// # Errors
    /// Those of loading the model.
    pub fn new(path: &Path) -> Result<Self, EngineError> {
        llama::silence();
        let loaded = llama::load(&EngineSpec { model: path.to_owned(), ..EngineSpec::default() })?;
        let tokens = usize::try_from(loaded.model.vocab().n_tokens()).unwrap_or(0);
        let candidates = LlamaTokenDataArray::new(Vec::with_capacity(tokens), false);
        Ok(Self { loaded, state: None, candidates, mask: vec![0.0; tokens] })
    }

    /// Starts a text in a grammar.
    ///
    /// # Errors
    /// If llama.cpp refuses the grammar.
    pub fn start(&mut self, gbnf: &str) -> Result<(), EngineError> {
        let state = LlamaSampler::grammar(&self.loaded.model, gbnf, "root");
        self.state =
            Some(state.map_err(|error| EngineError::Grammar { detail: error.to_string() })?);
        Ok(())
    }

    /// A number for each token: 0 if it may come next, else `-inf`. Empty before the start.
    pub fn mask(&mut self) -> &[f32] {
        let Some(state) = &mut self.state else { return &[] };
        self.candidates.selected = None;
        self.candidates.sorted = false;
        self.candidates.data.clear();

        let tokens = (0_i32..).zip(&self.mask);
        self.candidates
            .data
            .extend(tokens.map(|(id, _)| LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)));

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

    /// Advances by a token that does not end the text. It must be permitted: llama.cpp throws on
    /// others, which ends the process.
    pub fn accept(&mut self, token: u32) {
        if let Some(state) = &mut self.state {
            state.accept(LlamaToken(token.cast_signed()));
        }
    }
}
