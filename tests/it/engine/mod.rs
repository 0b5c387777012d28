//! The engine through its public interface.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

mod adapters;
mod answers;
mod automata;
mod exclusions;
mod following;
mod grammars;
mod idle;
mod prefixes;
mod reads;
mod survival;
mod thinking;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use prime_engine::{
    Device, Devices, Engine, EngineError, EngineSpec, EngineStatus, Format, Generation, Isolation,
    Request, Sampling,
};
use prime_engine_testing::TinyModel;
use tempfile::TempDir;

/// Longest wait for anything that must happen; far longer than it takes, because the machine may be
/// busy.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A folder with one tiny model.
pub struct Fixture {
    pub _folder: TempDir,
    pub model: PathBuf,
}

pub fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("tiny.gguf");
    TinyModel::default().write(&model).expect("model written");
    Fixture { _folder: folder, model }
}

/// The binary built with these tests, or the one that `PRIME_TEST_WORKER` names.
pub fn worker() -> PathBuf {
    std::env::var_os("PRIME_TEST_WORKER")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_prime-agents").into())
        .into()
}

/// The shipped model, or the file that `PRIME_TEST_MODEL` names.
pub fn shipped_model() -> PathBuf {
    let named = std::env::var_os("PRIME_TEST_MODEL").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("models/prime-tiny.gguf"))
}

/// The device for these tests: `PRIME_TEST_DEVICE`, such as `CUDA0`, or the CPU.
fn device() -> Devices {
    std::env::var("PRIME_TEST_DEVICE")
        .map_or(Device::Cpu, |name| name.parse().expect("PRIME_TEST_DEVICE: a device"))
        .into()
}

pub fn spec(model: &Path, isolation: Isolation) -> EngineSpec {
    EngineSpec {
        name: "test".to_owned(),
        model: model.to_owned(),
        device: device(),
        isolation,
        context_tokens: 2048,
        sequences_max: 8,
        batch_tokens: 64,
        worker: Some(worker()),
        ..EngineSpec::default()
    }
}

pub fn request(prompt: &str, seed: u64) -> Request {
    Request {
        prompt: prompt.to_owned(),
        format: Format::Raw,
        grammar: None,
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: prime_engine::Thinking::AsModel,
        sampling: Sampling { temperature: 1.0, top_p: 1.0, seed },
        max_tokens: 24,
        logprobs: true,
        ignore_end: false,
        group: 0,
        space: 0,
    }
}

pub type Answers = Receiver<(usize, Result<Generation, EngineError>)>;

/// Submits all at once.
pub fn submit_all(engine: &Engine, requests: Vec<Request>) -> Answers {
    let (sender, answers) = unbounded();
    for (index, request) in requests.into_iter().enumerate() {
        let sender = sender.clone();
        engine.submit(request, move |result| drop(sender.send((index, result))));
    }
    answers
}

/// All answers, in the order of the requests; fails unless each arrives exactly once.
pub fn collect(answers: &Answers, count: usize) -> Vec<Result<Generation, EngineError>> {
    let mut results: Vec<Option<Result<Generation, EngineError>>> = vec![None; count];
    for _ in 0..count {
        let (index, result) = answers.recv_timeout(PATIENCE).expect("an answer in time");
        assert!(results[index].replace(result).is_none(), "request {index} was answered twice");
    }
    assert!(answers.recv_timeout(PATIENCE).is_err(), "the last answer drops the last sender");
    results.into_iter().map(|result| result.expect("answered")).collect()
}

pub fn ask(engine: &Engine, requests: Vec<Request>) -> Vec<Result<Generation, EngineError>> {
    let count = requests.len();
    collect(&submit_all(engine, requests), count)
}

pub fn one(engine: &Engine, request: Request) -> Result<Generation, EngineError> {
    ask(engine, vec![request]).remove(0)
}

/// Waits for a state of the engine.
pub fn wait_for(engine: &Engine, wanted: impl Fn(&EngineStatus) -> bool) -> EngineStatus {
    let started = Instant::now();
    loop {
        let status = engine.status();
        if wanted(&status) {
            return status;
        }
        assert!(started.elapsed() < PATIENCE, "not in time: {status:?}");
        std::thread::yield_now();
    }
}
