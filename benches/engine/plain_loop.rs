//! A loop over llama.cpp without the engine's scheduling: the yardstick for the engine.

use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;

use prime_engine::{EngineSpec, KvPool, llama};

/// A token in the vocabulary of every model that is measured.
const LETTER: LlamaToken = LlamaToken(97);

/// Computes a prompt of `prompt` letters for each of `sequences`, one after another.
fn prefill(
    context: &mut LlamaContext<'_>,
    batch: &mut LlamaBatch<'_>,
    sequences: i32,
    prompt: usize,
) -> Option<()> {
    let most = context.n_batch() as usize;
    for sequence in 0..sequences {
        for at in (0..prompt).collect::<Vec<_>>().chunks(most) {
            batch.clear();
            for position in at {
                batch.add(LETTER, i32::try_from(*position).ok()?, &[sequence], false).ok()?;
            }
            context.decode(batch).ok()?;
        }
    }
    Some(())
}

/// How the plain loop chooses the next token. The cost of attention depends on the text: a score
/// above all previous ones costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainText {
    /// The likeliest token, as in greedy generation: often the same again and again.
    Likeliest,
    /// Drawn by llama.cpp's own samplers at temperature 1 and top-p 0.95.
    Drawn,
    /// A letter drawn uniformly; the likeliest token is still searched for.
    Letters,
}

/// The readings of `clock` before and after `sequences` turns prefill `prompt` tokens each, one
/// after another, then generate `tokens` each in lockstep: llama.cpp's own speed with this
/// specification. `None` if the model does not load.
pub fn plain_loop<T>(
    spec: &EngineSpec,
    sequences: i32,
    prompt: usize,
    tokens: usize,
    text: PlainText,
    clock: impl Fn() -> T,
) -> Option<(T, T)> {
    llama::silence();

    let loaded = llama::load(spec).ok()?;
    let mut context = llama::context(&loaded, spec).ok()?;
    let mut batch = LlamaBatch::new(spec.batch_tokens as usize, 1);
    let mut draw = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut sampler = LlamaSampler::chain_simple([
        LlamaSampler::top_p(0.95, 1),
        LlamaSampler::temp(1.0),
        LlamaSampler::dist(1),
    ]);

    let started = clock();
    prefill(&mut context, &mut batch, sequences, prompt)?;

    let mut next = vec![LETTER; usize::try_from(sequences).ok()?];
    for step in 0..tokens {
        batch.clear();
        for (sequence, token) in (0..).zip(&next) {
            batch.add(*token, i32::try_from(prompt + step).ok()?, &[sequence], true).ok()?;
        }

        context.decode(&mut batch).ok()?;

        for (row, token) in (0..).zip(&mut next) {
            if text == PlainText::Drawn {
                *token = sampler.sample(&context, row);
                continue;
            }

            let logits = context.get_logits_ith(row);
            let best = (0..).zip(logits).max_by(|a, b| a.1.total_cmp(b.1))?;
            *token = match text {
                PlainText::Letters => LlamaToken(LETTER.0 + draw.random_range(0..26)),
                _ => LlamaToken(best.0),
            };
        }
    }

    Some((started, clock()))
}

/// Durations of operations on the KV pool, each with the decode of the next token, which carries
/// out copies of buffers.
#[derive(Debug, Clone, Copy)]
pub struct PoolTimes {
    /// One token alone.
    pub decode: Duration,
    /// Another sequence gets the tokens, and decodes one.
    pub fork: Duration,
    /// A sequence loses its last 16 tokens, and decodes one.
    pub rollback: Duration,
}

/// Medians of `times` operations on a sequence of `tokens` tokens. None if the model does not load.
pub fn pool_times(spec: &EngineSpec, tokens: usize, times: usize) -> Option<PoolTimes> {
    const REMOVED: usize = 16;
    llama::silence();

    let loaded = llama::load(spec).ok()?;
    let mut context = llama::context(&loaded, spec).ok()?;
    let mut batch = LlamaBatch::new(spec.batch_tokens as usize, 1);
    prefill(&mut context, &mut batch, 1, tokens)?;

    let place = |at: usize| i32::try_from(at).ok();
    let mut decode =
        |context: &mut LlamaContext<'_>, sequence: i32, positions: std::ops::Range<usize>| {
            batch.clear();
            for at in positions {
                batch.add(LETTER, place(at)?, &[sequence], true).ok()?;
            }
            context.decode(&mut batch).ok()
        };
    let cut = |context: &mut LlamaContext<'_>, sequence: u32, from: usize| {
        context.clear_kv_cache_seq(Some(sequence), Some(u32::try_from(from).ok()?), None).ok()
    };

    // A part of a split pool can only be copied as a whole.
    let end = match spec.kv {
        KvPool::Shared => Some(u32::try_from(tokens).ok()?),
        KvPool::Split => None,
    };

    let (mut plain, mut forks, mut rollbacks) = (Vec::new(), Vec::new(), Vec::new());

    for _ in 0..times {
        let started = Instant::now();
        decode(&mut context, 0, tokens..tokens + 1)?;
        plain.push(started.elapsed());
        cut(&mut context, 0, tokens)?;

        let started = Instant::now();
        context.copy_kv_cache_seq(0, 1, None, end).ok()?;
        decode(&mut context, 1, tokens..tokens + 1)?;
        forks.push(started.elapsed());
        cut(&mut context, 1, 0)?;
        // The tokens that are rolled back.
        decode(&mut context, 0, tokens..tokens + REMOVED)?;

        let started = Instant::now();
        cut(&mut context, 0, tokens)?;
        decode(&mut context, 0, tokens..tokens + 1)?;
        rollbacks.push(started.elapsed());
        cut(&mut context, 0, tokens)?;
    }

    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };

    Some(PoolTimes {
        decode: median(&mut plain),
        fork: median(&mut forks),
        rollback: median(&mut rollbacks),
    })
}
