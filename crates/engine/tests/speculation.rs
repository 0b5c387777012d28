//! Drafts from a turn's own text change how much is computed at once, but never the text.
#![cfg(feature = "llama")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "waits for answers, in real time")]

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::unbounded;
use prime_engine::{
    Engine, EngineCounts, EngineSpec, Format, Generation, Isolation, KvPool, Request, Sampling,
    Speculation, Thinking,
};
use prime_engine_testing::{Architecture, TinyModel, teacher_forced};

/// Longest wait for answers; far longer than they take.
const PATIENCE: Duration = Duration::from_mins(5);

/// Largest difference of a log-probability from that of a token-by-token pass: the order of sums
/// and the 16-bit KV pool.
const TOLERANCE: f64 = 0.05;

fn started(model: &Path, kv: KvPool, speculation: Speculation) -> Engine {
    let spec = EngineSpec {
        model: model.to_owned(),
        isolation: Isolation::Thread,
        context_tokens: 4 * 1024,
        kv,
        sequences_max: 4,
        batch_tokens: 128,
        speculation,
        ..EngineSpec::default()
    };
    Engine::start(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn request(prompt: &str, sampling: Sampling) -> Request {
    Request {
        prompt: prompt.to_owned(),
        format: Format::Raw,
        grammar: None,
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: Thinking::AsModel,
        sampling,
        max_tokens: 60,
        logprobs: true,
        ignore_end: true,
        group: 0,
        space: 0,
    }
}

fn seeded(seed: u64) -> Sampling {
    Sampling { temperature: 0.7, top_p: 0.95, seed }
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

fn one(engine: &Engine, request: &Request) -> Generation {
    ask(engine, std::slice::from_ref(request)).remove(0)
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

fn assert_right(model: &Path, request: &Request, generation: &Generation, what: &str) {
    let right = teacher_forced(model, &request.prompt, &generation.tokens).expect("computed");
    assert_eq!(generation.logprobs.len(), right.len(), "{what}");
    for (at, (got, right)) in generation.logprobs.iter().zip(&right).enumerate() {
        let difference = (f64::from(*got) - right).abs();
        assert!(difference < TOLERANCE, "{what}, token {at}: {got} instead of {right}");
    }
}

/// A model whose texts soon repeat themselves: its distributions are peaked.
fn written(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("tiny.gguf");
    TinyModel { output_scale: 1.0, ..TinyModel::default() }.write(&path).unwrap();
    path
}

#[test]
fn texts_and_log_probabilities_are_those_without_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path());
    let prompts = ["move 1 0 2; move 2 0 1; move 1 2 1; ", "[3,1,2] [3,1,2] [3,1,", "x"];
    let grammars = [None, Some("root ::= (\"move \" [0-9] \" \" [0-2] \"; \")+")];

    for kv in [KvPool::Shared, KvPool::Split] {
        let plain = started(&model, kv, Speculation::None);
        let drafting = started(&model, kv, Speculation::Ngram);
        for prompt in prompts {
            for grammar in grammars {
                for sampling in [Sampling::GREEDY, seeded(1), seeded(2)] {
                    let request =
                        Request { grammar: grammar.map(Into::into), ..request(prompt, sampling) };
                    let what = format!("{kv:?} {prompt:?} {grammar:?} {sampling:?}");
                    let (expected, got) = (one(&plain, &request), one(&drafting, &request));
                    assert_eq!(
                        (&got.text, &got.tokens, got.finish),
                        (&expected.text, &expected.tokens, expected.finish),
                        "{what}"
                    );
                    assert_right(&model, &request, &got, &what);
                }
            }
        }

        let (plain, drafting) = (counts(&plain), counts(&drafting));
        assert_eq!((plain.drafted_tokens, plain.accepted_tokens), (0, 0));
        assert_eq!(drafting.generated_tokens, plain.generated_tokens);
        // Every token that a draft foresaw saves a pass; some drafts were wrong.
        assert!(drafting.accepted_tokens > 0, "{drafting:?}");
        assert!(drafting.accepted_tokens < drafting.drafted_tokens, "{drafting:?}");
        assert!(drafting.decodes < plain.decodes, "{drafting:?} {plain:?}");
    }
}

#[test]
fn what_a_wrong_draft_left_is_gone_for_the_turns_that_follow_and_for_those_beside() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path());
    for kv in [KvPool::Shared, KvPool::Split] {
        let engine = started(&model, kv, Speculation::Ngram);
        // Hot: most drafts are wrong.
        let hot =
            |prompt: &str, seed| request(prompt, Sampling { temperature: 3.0, top_p: 1.0, seed });
        let mut prompts: Vec<String> =
            (0..4).map(|turn| format!("turn {turn}: abcabcabc {turn} abcabcabc")).collect();
        for round in 0..4 {
            let requests: Vec<Request> =
                (1..).zip(&prompts).map(|(seed, prompt)| hot(prompt, seed + 10 * round)).collect();
            let answers = ask(&engine, &requests);
            for (request, answer) in requests.iter().zip(&answers) {
                assert_right(&model, request, answer, &format!("{kv:?}, round {round}"));
            }
            // The next prompts continue what is cached now.
            prompts = requests
                .iter()
                .zip(&answers)
                .map(|(request, answer)| {
                    let letters = answer.text.chars().filter(char::is_ascii_alphanumeric);
                    let letters: String = letters.take(20).collect();
                    format!("{}{letters} abcabc", request.prompt)
                })
                .collect();
        }
        let counts = counts(&engine);
        assert!(counts.drafted_tokens > counts.accepted_tokens, "{counts:?}");
    }
}

#[test]
fn a_draft_ends_where_the_grammar_forbids_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path());
    let engine = started(&model, KvPool::Shared, Speculation::Ngram);
    // After the forced `ab` the text says `cX`, and the grammar permits `c`.
    let held = Request {
        grammar: Some("root ::= \"ab\" [cd] [0-9]".into()),
        ignore_end: false,
        ..request("abcX abcX ", Sampling::GREEDY)
    };
    let answer = one(&engine, &held);
    assert!(answer.text.starts_with("ab") && answer.text.len() == 4, "{:?}", answer.text);
    assert_right(&model, &held, &answer, "held");
    assert_eq!(counts(&engine).drafted_tokens, 1);
}

#[test]
fn a_text_is_never_longer_than_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let model = written(folder.path());
    let engine = started(&model, KvPool::Shared, Speculation::Ngram);
    for max_tokens in 1..=12 {
        let request = Request { max_tokens, ..request(&"abc".repeat(9), Sampling::GREEDY) };
        let answer = one(&engine, &request);
        assert_eq!(answer.tokens.len(), max_tokens as usize);
        assert_right(&model, &request, &answer, &format!("{max_tokens} tokens"));
    }
}

#[test]
fn models_that_cannot_be_rolled_back_to_any_token_have_no_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny.gguf");
    for architecture in Architecture::ALL {
        architecture.write(&model).unwrap();
        let engine = started(&model, KvPool::Shared, Speculation::Ngram);
        let request = request("abcabcabcabc", Sampling::GREEDY);
        let answer = one(&engine, &request);
        assert_right(&model, &request, &answer, &format!("{architecture:?}"));
        assert_eq!(counts(&engine).drafted_tokens, 0, "{architecture:?}");
    }
}
