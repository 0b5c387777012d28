//! Log-probabilities from llama.cpp, one token at a time.

use std::path::Path;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use prime_engine::{EngineSpec, llama};

/// ln p of each of `tokens` after `prompt`, each from a pass over a single token, in double
/// precision: what an engine's log-probabilities must agree with. `None` if the model does not
/// load.
pub fn teacher_forced(path: &Path, prompt: &str, tokens: &[u32]) -> Option<Vec<f64>> {
    let spec = EngineSpec { model: path.to_owned(), context_tokens: 4096, ..EngineSpec::default() };
    llama::silence();
    let loaded = llama::load(&spec).ok()?;
    let mut context = llama::context(&loaded, &spec).ok()?;

    let prompt = loaded.model.vocab().tokenize(prompt.as_bytes(), true, true);
    let generated = tokens.iter().map(|token| LlamaToken(token.cast_signed()));
    let all: Vec<LlamaToken> = prompt.iter().copied().chain(generated).collect();

    let mut batch = LlamaBatch::new(1, 1);
    let mut logprobs = Vec::new();
    // What follows the last token is not asked for.
    for (at, token) in all[..all.len() - 1].iter().enumerate() {
        batch.clear();
        batch.add(*token, i32::try_from(at).ok()?, &[0], true).ok()?;
        context.decode(&mut batch).ok()?;
        if at + 1 >= prompt.len() {
            let logits = context.get_logits_ith(0);
            let total: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
            let next = usize::try_from(all[at + 1].0).ok()?;
            logprobs.push(f64::from(logits[next]) - total.ln());
        }
    }

    Some(logprobs)
}
