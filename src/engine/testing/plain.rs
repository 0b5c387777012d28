//! llama.cpp used in the plainest way, for tests to compare the engine with.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::path::Path;
use std::time::Instant;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::engine::{EngineSpec, ffi, model};

/// ln p of each of `tokens` after `prompt`, each in a pass over one token alone, in double precision: what an
/// engine's log-probabilities must agree with. None if the model does not load.
pub fn teacher_forced(path: &Path, prompt: &str, tokens: &[u32]) -> Option<Vec<f64>> {
    let spec = EngineSpec { model: path.to_owned(), context_tokens: 4096, ..EngineSpec::default() };
    ffi::keep_logs(ffi::Stderr::Silent);
    let loaded = model::load(&spec).ok()?;
    let mut context = model::context(&loaded, &spec).ok()?;
    let prompt = loaded.model.vocab().tokenize(prompt.as_bytes(), true, true);
    let chosen = tokens.iter().map(|token| LlamaToken(token.cast_signed()));
    let all: Vec<LlamaToken> = prompt.iter().copied().chain(chosen).collect();
    let mut batch = LlamaBatch::new(1, 1);
    let mut logprobs = Vec::new();
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

/// Tokens per second of `sequences` that decode in step, `tokens` each after a prompt of `prompt` bytes, with the
/// likeliest token as the only choice: the most that an engine with the same specification can reach.
pub fn plain_rate(spec: &EngineSpec, sequences: i32, prompt: usize, tokens: usize) -> Option<f64> {
    ffi::keep_logs(ffi::Stderr::Silent);
    let loaded = model::load(spec).ok()?;
    let mut context = model::context(&loaded, spec).ok()?;
    let mut batch = LlamaBatch::new(spec.batch_tokens as usize, 1);
    let started = Instant::now();
    for sequence in 0..sequences {
        for at in (0..prompt).collect::<Vec<_>>().chunks(spec.batch_tokens as usize) {
            batch.clear();
            for position in at {
                batch.add(LlamaToken(97), i32::try_from(*position).ok()?, &[sequence], false).ok()?;
            }
            context.decode(&mut batch).ok()?;
        }
    }
    let mut next = vec![LlamaToken(97); usize::try_from(sequences).ok()?];
    for step in 0..tokens {
        batch.clear();
        for (sequence, token) in (0..).zip(&next) {
            batch.add(*token, i32::try_from(prompt + step).ok()?, &[sequence], true).ok()?;
        }
        context.decode(&mut batch).ok()?;
        for (row, token) in (0..).zip(&mut next) {
            let logits = context.get_logits_ith(row);
            let best = (0..).zip(logits).max_by(|a, b| a.1.total_cmp(b.1))?;
            *token = LlamaToken(best.0);
        }
    }
    Some((next.len() * tokens) as f64 / started.elapsed().as_secs_f64())
}
