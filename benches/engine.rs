//! How much of llama.cpp's own speed the engine keeps: its tokens per second beside those of a plain decode loop, with
//! a random model of a million parameters. Run on an idle machine: `cargo bench --bench engine`. On a GPU:
//! `PRIME_TEST_DEVICE=CUDA0`. `PRIME_TEST_WORKER` is the binary, where it is not where it was built.
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::unbounded;
use prime_agents::engine::testing::{TinyModel, plain_rate};
use prime_agents::engine::{Device, Engine, EngineSpec, Format, Isolation, KvPool, Request, Sampling};

const PROMPT_BYTES: usize = 64;
const TOKENS: u32 = 192;

/// Tokens per second, and turns per second, with `sequences` turns in flight all the time.
fn engine_rate(engine: &Engine, sequences: usize, template: &Request, turns: usize) -> (f64, f64) {
    let (sender, answers) = unbounded();
    let submit = |seed: usize| {
        let sender = sender.clone();
        let sampling = Sampling { seed: seed as u64, ..template.sampling };
        engine.submit(Request { sampling, ..template.clone() }, move |result| drop(sender.send(result)));
    };
    let started = Instant::now();
    let mut tokens = 0;
    (0..sequences).for_each(&submit);
    for turn in 0..turns {
        tokens += answers.recv().expect("an answer").expect("generated").tokens.len();
        if turn + sequences < turns {
            submit(turn + sequences);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    (tokens as f64 / seconds, turns as f64 / seconds)
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("million.gguf");
    TinyModel::MILLION.write(&model).expect("model written");
    let worker = std::env::var_os("PRIME_TEST_WORKER").unwrap_or_else(|| env!("CARGO_BIN_EXE_prime-agents").into());
    let device: Device =
        std::env::var("PRIME_TEST_DEVICE").map_or(Device::Cpu, |name| name.parse().expect("PRIME_TEST_DEVICE"));
    let spec = |isolation, kv| EngineSpec {
        model: model.clone(),
        device: device.clone().into(),
        isolation,
        context_tokens: 32 * 256,
        sequences_max: 32,
        kv,
        batch_tokens: 256,
        worker: Some(PathBuf::from(&worker)),
        ..EngineSpec::default()
    };
    // Long lines of lower-case letters; the grammar also keeps the end of the text away.
    let grammar: Arc<str> = "root ::= [a-z]+".into();
    let base = Request {
        prompt: "p".repeat(PROMPT_BYTES - 1),
        format: Format::Raw,
        grammar: None,
        sampling: Sampling { temperature: 0.0, top_p: 1.0, seed: 0 },
        max_tokens: TOKENS,
        logprobs: false,
    };
    let drawn = Sampling { temperature: 1.0, ..base.sampling };
    let kinds = [
        ("greedy", base.clone()),
        ("drawn+logprobs", Request { sampling: drawn, logprobs: true, ..base.clone() }),
        (
            "drawn+logprobs+top-p",
            Request { sampling: Sampling { top_p: 0.9, ..drawn }, logprobs: true, ..base.clone() },
        ),
        ("drawn+logprobs+grammar", Request { sampling: drawn, logprobs: true, grammar: Some(grammar), ..base.clone() }),
        ("short turns: greedy, 8 tokens", Request { max_tokens: 8, ..base.clone() }),
    ];
    for sequences in [1_usize, 8, 32] {
        let count = i32::try_from(sequences).expect("small");
        for kv in [KvPool::Shared, KvPool::Split] {
            let engine = Engine::start(spec(Isolation::Process, kv)).expect("started");
            let plain = || plain_rate(&spec(Isolation::Thread, kv), count, PROMPT_BYTES, TOKENS as usize);
            println!("{sequences:3} sequences, {kv:?}, plain loop: {:.0} tokens/s", plain().expect("decoded"));
            for (name, request) in &kinds {
                let (rate, turns) = engine_rate(&engine, sequences, request, (sequences * 3).max(16));
                println!("{sequences:3} sequences, {kv:?}, {name}: {rate:.0} tokens/s, {turns:.0} turns/s");
            }
            println!("{sequences:3} sequences, {kv:?}, plain loop again: {:.0} tokens/s", plain().expect("decoded"));
        }
    }
}
