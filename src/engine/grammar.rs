//! Compiled grammars: a cache by text, and the state of one generation in a grammar.
//!
//! Uses only the calls that cannot throw through Rust or abort: `apply` on candidates, and `try_accept` of a token
//! that `apply` left standing. An end-of-text token is never accepted; it ends the generation instead.

use std::collections::HashMap;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use super::EngineError;

/// Compiled grammars that are kept; real deployments have a few per task.
const CACHED_MAX: usize = 512;

/// Compiles each grammar once.
#[derive(Default)]
pub(super) struct Grammars {
    compiled: HashMap<String, LlamaSampler>,
}

impl Grammars {
    /// A fresh state at the beginning of the grammar.
    pub(super) fn start(&mut self, model: &LlamaModel, text: &str) -> Result<Grammar, EngineError> {
        if let Some(sampler) = self.compiled.get(text) {
            return Ok(Grammar { state: sampler.clone() });
        }
        let state = LlamaSampler::grammar(model, text, "root").map_err(|error| EngineError::Grammar {
            detail: match error {
                // llama.cpp's parser prints its reason instead of logging it.
                llama_cpp_2::GrammarError::NullGrammar => "it does not parse or has no usable rule `root`".to_owned(),
                other => other.to_string(),
            },
        })?;
        if self.compiled.len() == CACHED_MAX {
            // Rare enough that starting over is fine, and it needs no order of use.
            self.compiled.clear();
        }
        self.compiled.insert(text.to_owned(), state.clone());
        Ok(Grammar { state })
    }
}

/// Where one generation is in its grammar.
pub(super) struct Grammar {
    state: LlamaSampler,
}

/// Candidate tokens for a grammar to look at; one per context, so that it is allocated once.
pub(super) struct Candidates {
    array: LlamaTokenDataArray,
    permitted: Vec<f32>,
}

impl Candidates {
    pub(super) fn new(vocabulary: usize) -> Self {
        Self {
            array: LlamaTokenDataArray::new(Vec::with_capacity(vocabulary), false),
            permitted: Vec::with_capacity(vocabulary),
        }
    }

    fn fill(&mut self, tokens: impl Iterator<Item = (i32, f32)>) {
        self.array.selected = None;
        self.array.sorted = false;
        self.array.data.clear();
        self.array.data.extend(tokens.map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0)));
    }
}

impl Grammar {
    /// Whether `token` may come next.
    pub(super) fn permits(&mut self, token: LlamaToken, candidates: &mut Candidates) -> bool {
        candidates.fill(std::iter::once((token.0, 0.0)));
        self.state.apply(&mut candidates.array);
        candidates.array.data.first().is_some_and(|candidate| candidate.logit().is_finite())
    }

    /// `logits` with `-inf` for every token that may not come next.
    pub(super) fn mask<'c>(&mut self, logits: &[f32], candidates: &'c mut Candidates) -> &'c [f32] {
        candidates.fill((0_i32..).zip(logits.iter().copied()));
        self.state.apply(&mut candidates.array);
        candidates.permitted.clear();
        candidates.permitted.resize(logits.len(), f32::NEG_INFINITY);
        for candidate in &candidates.array.data {
            let place = usize::try_from(candidate.id().0).ok().and_then(|id| candidates.permitted.get_mut(id));
            if let Some(place) = place {
                *place = candidate.logit();
            }
        }
        &candidates.permitted
    }

    /// Moves on by a token that `permits` or `mask` allowed and that does not end the text.
    pub(super) fn accept(&mut self, token: LlamaToken) -> Result<(), EngineError> {
        self.state
            .try_accept(token)
            .map_err(|_| EngineError::Grammar { detail: format!("it lost its place at token {}", token.0) })
    }
}
