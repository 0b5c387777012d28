//! Models whose sequences cannot be rolled back token by token, under the traffic of runs. Whatever
//! was reused, each answer equals that of a fresh context that computes token by token.
#![cfg(feature = "llama")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "waits for answers, in real time")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::unbounded;
use prime_engine::{
    Engine, EngineCounts, EngineSpec, Format, Generation, Isolation, KvPool, Request, Sampling,
    Thinking,
};
use prime_engine_testing::{Architecture, WINDOW, teacher_forced};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

/// Longest wait for answers; far longer than they take.
const PATIENCE: Duration = Duration::from_mins(5);

/// Largest difference of a log-probability from that of a token-by-token pass: the order of sums
/// and the 16-bit KV pool.
const TOLERANCE: f64 = 0.05;

fn written(architecture: Architecture) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    architecture.write(&path).unwrap();
    (folder, path)
}

fn started(model: &Path, kv: KvPool, checkpoint_mib: u32) -> Engine {
    let spec = EngineSpec {
        model: model.to_owned(),
        isolation: Isolation::Thread,
        context_tokens: 6 * 512,
        kv,
        sequences_max: 4,
        kept_max: 2,
        batch_tokens: 96,
        checkpoint_mib,
        ..EngineSpec::default()
    };
    Engine::start(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn request(prompt: &str, seed: u64, max_tokens: u32) -> Request {
    let sampling = if seed.is_multiple_of(2) {
        Sampling::GREEDY
    } else {
        Sampling { temperature: 1.0, top_p: 1.0, seed }
    };
    Request {
        prompt: prompt.to_owned(),
        format: Format::Raw,
        grammar: Some("root ::= [a-z]+".into()),
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: Thinking::AsModel,
        sampling,
        max_tokens,
        logprobs: true,
        ignore_end: false,
        group: 0,
        space: 0,
    }
}

/// The answers, in the order of the requests.
fn ask(engine: &Engine, requests: &[Request]) -> Vec<Generation> {
    let (sender, answers) = unbounded();
    for (at, request) in requests.iter().enumerate() {
        let sender = sender.clone();
        engine.submit(request.clone(), move |result| drop(sender.send((at, result))));
    }
    let mut all: Vec<_> = requests
        .iter()
        .map(|_| {
            let (at, result) = answers.recv_timeout(PATIENCE).expect("an answer in time");
            (at, result.unwrap_or_else(|error| panic!("request {at}: {error}")))
        })
        .collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, generation)| generation).collect()
}

fn counts(engine: &Engine) -> EngineCounts {
    loop {
        let status = engine.status();
        if status.in_flight == 0 && status.counts.live == 0 {
            return status.counts;
        }
        std::thread::yield_now();
    }
}

fn letters(rng: &mut ChaCha8Rng, count: usize) -> String {
    (0..count).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
}

fn assert_right(model: &Path, request: &Request, generation: &Generation, what: &str) {
    let right = teacher_forced(model, &request.prompt, &generation.tokens).expect("computed");
    assert_eq!(generation.logprobs.len(), right.len(), "{what}");
    for (at, (got, right)) in generation.logprobs.iter().zip(&right).enumerate() {
        let difference = (f64::from(*got) - right).abs();
        assert!(difference < TOLERANCE, "{what}, token {at}: {got} instead of {right}");
    }
}

/// Prompts as runs make them: retries, further steps, and returns to earlier states.
struct Traffic {
    rng: ChaCha8Rng,
    heads: Vec<String>,
    /// Prompts with what was answered.
    past: Vec<(String, String)>,
}

impl Traffic {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let heads = (0..2).map(|_| letters(&mut rng, 120)).collect();
        Self { rng, heads, past: Vec::new() }
    }

    fn prompt(&mut self) -> String {
        let rng = &mut self.rng;
        let drawn = (!self.past.is_empty()).then(|| rng.random_range(0..self.past.len()));
        let Some((prompt, answer)) = drawn.map(|at| self.past[at].clone()) else {
            let head = self.heads[rng.random_range(0..self.heads.len())].clone();
            return head + &letters(rng, 20);
        };
        match rng.random_range(0..5) {
            // A retry, and one with feedback.
            0 => prompt,
            1 => format!("{prompt} {answer} is wrong; "),
            // The next step.
            2 if prompt.len() < 300 => format!("{prompt}{answer} {}", letters(rng, 9)),
            // A return to an earlier state.
            3 => {
                let at = rng.random_range(1..prompt.len());
                prompt[..at].to_owned() + &letters(rng, 12)
            }
            _ => {
                let head = self.heads[rng.random_range(0..self.heads.len())].clone();
                head + &letters(rng, 30)
            }
        }
    }

    fn requests(&mut self) -> Vec<Request> {
        let count = self.rng.random_range(1..=5);
        (0..count)
            .map(|_| {
                let prompt = self.prompt();
                request(&prompt, self.rng.random(), self.rng.random_range(1..=16))
            })
            .collect()
    }
}

#[test]
fn answers_under_random_traffic_are_those_of_a_fresh_context() {
    for architecture in Architecture::ALL {
        let (_folder, model) = written(architecture);
        for (seed, kv, checkpoint_mib) in [
            (1, KvPool::Shared, 64),
            (2, KvPool::Split, 64),
            (3, KvPool::Shared, 1),
            (4, KvPool::Split, 0),
        ] {
            let engine = started(&model, kv, checkpoint_mib);
            let mut traffic = Traffic::new(seed);
            for round in 0..6 {
                let requests = traffic.requests();
                let what = format!("{architecture:?}, {kv:?}, {checkpoint_mib} MiB, round {round}");
                for (request, answer) in requests.iter().zip(ask(&engine, &requests)) {
                    assert_right(&model, request, &answer, &what);
                    traffic.past.push((request.prompt.clone(), answer.text));
                }
            }
        }
    }
}

#[test]
fn a_retry_and_a_common_prefix_start_from_saved_states() {
    for architecture in Architecture::ALL {
        let (_folder, model) = written(architecture);
        for kv in [KvPool::Shared, KvPool::Split] {
            let what = format!("{architecture:?}, {kv:?}");
            let engine = started(&model, kv, 64);
            let head = letters(&mut ChaCha8Rng::seed_from_u64(5), 20);

            // Begin, 20 letters, 4 digits: 25 tokens.
            let first = request(&format!("{head}1111"), 1, 6);
            assert_eq!(ask(&engine, std::slice::from_ref(&first))[0].cached_tokens, 0, "{what}");
            assert_eq!(ask(&engine, &[first])[0].cached_tokens, 24, "{what}: a retry");

            let is_rolled_back = architecture == Architecture::Gemma3;
            let second = request(&format!("{head}2222"), 1, 6);
            let cached = ask(&engine, &[second])[0].cached_tokens;
            assert_eq!(cached, if is_rolled_back { 21 } else { 0 }, "{what}: a divergence");
            let third = request(&format!("{head}3333"), 1, 6);
            let cached = ask(&engine, &[third])[0].cached_tokens;
            assert_eq!(cached, 21, "{what}: the state at the divergence is saved now");
        }
    }
}

#[test]
fn turns_that_arrive_together_share_the_prefix_that_one_of_them_computes() {
    for architecture in Architecture::ALL {
        let (_folder, model) = written(architecture);
        let engine = started(&model, KvPool::Shared, 64);
        let head = letters(&mut ChaCha8Rng::seed_from_u64(6), 320);
        let requests: Vec<Request> =
            (1..=4).map(|turn| request(&format!("{head} {turn}"), turn, 6)).collect();
        for (request, answer) in requests.iter().zip(ask(&engine, &requests)) {
            assert_right(&model, request, &answer, &format!("{architecture:?}"));
        }

        let counts = counts(&engine);
        // Begin, the head and a space once, and the last token of each.
        assert_eq!(
            counts.prompt_tokens - counts.shared_tokens,
            322 + 4,
            "{architecture:?}: {counts:?}"
        );
    }
}

#[test]
fn a_window_that_other_turns_have_overwritten_is_computed_again() {
    let (_folder, model) = written(Architecture::Gemma3);
    let engine = started(&model, KvPool::Shared, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let long = letters(&mut rng, 8 * WINDOW as usize);
    ask(&engine, &[request(&long, 1, 4)]);
    // These reuse the cells that the window of the first has passed.
    for _ in 0..6 {
        let other = letters(&mut rng, 300);
        ask(&engine, &[request(&other, 1, 4)]);
    }

    for end in [2 * WINDOW as usize, 4 * WINDOW as usize, 8 * WINDOW as usize - 3] {
        let back = request(&format!("{} and on", &long[..end]), 1, 8);
        let answer = &ask(&engine, std::slice::from_ref(&back))[0];
        assert_right(&model, &back, answer, &format!("back to {end}"));
    }
}

/// What one space has computed, saved states included, makes nothing cheaper in another one, and
/// the answers are the same.
#[test]
fn spaces_share_no_prefix() {
    for architecture in [Architecture::Lfm2, Architecture::Gemma3] {
        let (_folder, model) = written(architecture);
        let engine = started(&model, KvPool::Shared, 64);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let prompt = letters(&mut rng, 80);

        let asked = |space| {
            let request = Request { space, ..request(&prompt, 2, 4) };
            ask(&engine, std::slice::from_ref(&request)).remove(0)
        };
        let [first, again, elsewhere, again_there] = [1, 1, 2, 2].map(asked);
        assert_eq!((first.cached_tokens, elsewhere.cached_tokens), (0, 0), "{architecture:?}");
        assert!(again.cached_tokens > 0, "{architecture:?}");
        assert_eq!(again_there.cached_tokens, again.cached_tokens, "{architecture:?}");
        assert_eq!(elsewhere.tokens, first.tokens, "{architecture:?}");

        // At the same time, too: a turn waits for no prefix of another space.
        let side_by_side: Vec<Request> =
            (3..6).map(|space| Request { space, ..request(&prompt, 2, 4) }).collect();
        let all = ask(&engine, &side_by_side);
        assert!(all.iter().all(|answer| answer.cached_tokens == 0), "{architecture:?}");
    }
}
