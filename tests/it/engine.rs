//! The engine as its users see it: answers in a thread, and survival in a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use prime_agents::engine::testing::{END, TinyModel, teacher_forced};
use prime_agents::engine::{
    Device, Engine, EngineError, EngineSpec, EngineStatus, Fault, Finish, Generation, Isolation, Request, Sampling,
    devices_of,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longest wait for anything that must happen; far above what it takes, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with one tiny model.
struct Fixture {
    _folder: TempDir,
    model: PathBuf,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("tiny.gguf");
    TinyModel::default().write(&model).expect("model written");
    Fixture { _folder: folder, model }
}

fn worker() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_prime-agents"))
}

fn spec(model: &Path, isolation: Isolation) -> EngineSpec {
    EngineSpec {
        name: "test".to_owned(),
        model: model.to_owned(),
        isolation,
        context_tokens: 2048,
        sequences_max: 8,
        batch_tokens: 64,
        worker: Some(worker()),
        ..EngineSpec::default()
    }
}

fn request(prompt: &str, seed: u64) -> Request {
    Request {
        prompt: prompt.to_owned(),
        grammar: None,
        sampling: Sampling { temperature: 1.0, top_p: 1.0, seed },
        max_tokens: 24,
        logprobs: true,
    }
}

type Answers = Receiver<(usize, Result<Generation, EngineError>)>;

/// Submits all at once.
fn submit_all(engine: &Engine, requests: Vec<Request>) -> Answers {
    let (sender, answers) = unbounded();
    for (index, request) in requests.into_iter().enumerate() {
        let sender = sender.clone();
        engine.submit(request, move |result| drop(sender.send((index, result))));
    }
    answers
}

/// Every answer, in the order of the requests; fails unless each comes exactly once.
fn collect(answers: &Answers, count: usize) -> Vec<Result<Generation, EngineError>> {
    let mut results: Vec<Option<Result<Generation, EngineError>>> = vec![None; count];
    for _ in 0..count {
        let (index, result) = answers.recv_timeout(PATIENCE).expect("an answer in time");
        assert!(results[index].replace(result).is_none(), "request {index} was answered twice");
    }
    assert!(answers.recv_timeout(PATIENCE).is_err(), "all senders are gone after the last answer");
    results.into_iter().map(|result| result.expect("answered")).collect()
}

fn ask(engine: &Engine, requests: Vec<Request>) -> Vec<Result<Generation, EngineError>> {
    let count = requests.len();
    collect(&submit_all(engine, requests), count)
}

fn one(engine: &Engine, request: Request) -> Result<Generation, EngineError> {
    ask(engine, vec![request]).remove(0)
}

/// Waits until the engine's state is as wanted.
fn wait_for(engine: &Engine, wanted: impl Fn(&EngineStatus) -> bool) -> EngineStatus {
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

fn signal(status: &EngineStatus, signal: Signal) {
    let pid = status.worker_pid.and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("a worker process");
    kill_process(pid, signal).expect("signal sent");
}

#[test]
fn the_same_seed_gives_the_same_text_alone_and_in_company() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let alone = one(&engine, request("the answer is ", 7)).expect("generated");
    let requests = (0..8).map(|n| request(if n % 2 == 0 { "the answer is " } else { "a longer prompt: 1 2 3 " }, 7 + n / 2));
    let together: Vec<Generation> =
        ask(&engine, requests.collect()).into_iter().collect::<Result<_, _>>().expect("all generated");
    // Batch shapes move the last bits of the logits; with so few tokens no choice falls differently.
    assert_eq!(together[0].tokens, alone.tokens);
    assert_ne!(together[2].tokens, alone.tokens, "another seed");
    assert_ne!(together[1].tokens, alone.tokens, "another prompt");
    assert_eq!(alone.prompt_tokens, 15, "14 bytes and the begin-of-text token");
    let status = engine.status();
    assert!(status.ready && status.worker_pid.is_none() && status.in_flight == 0, "{status:?}");
    assert!(status.model.contains("tiny random") && !status.device.is_empty(), "{status:?}");
    assert_eq!((status.context_tokens, status.turn_tokens_max), (2048, 2048));
}

#[test]
fn greedy_choices_do_not_depend_on_the_seed() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let greedy = |seed| Request { sampling: Sampling { temperature: 0.0, top_p: 1.0, seed }, ..request("x", seed) };
    let texts = ask(&engine, vec![greedy(1), greedy(2)]);
    assert_eq!(texts[0].as_ref().expect("generated").tokens, texts[1].as_ref().expect("generated").tokens);
}

#[test]
fn a_grammar_is_obeyed_by_every_way_of_choosing() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let grammar: Arc<str> = r#"root ::= "a" [0-9] [0-9] "\n""#.into();
    let samplings = (0..32).map(|seed| Sampling {
        temperature: if seed % 4 == 0 { 0.0 } else { 1.5 },
        top_p: if seed % 4 == 1 { 0.3 } else { 1.0 },
        seed,
    });
    let requests: Vec<Request> = samplings
        .map(|sampling| Request { grammar: Some(Arc::clone(&grammar)), sampling, ..request("say: ", 0) })
        .collect();
    let mut texts = std::collections::BTreeSet::new();
    for generation in ask(&engine, requests) {
        let generation = generation.expect("generated");
        let bytes = generation.text.as_bytes();
        assert!(
            matches!(bytes, [b'a', x, y, b'\n'] if x.is_ascii_digit() && y.is_ascii_digit()),
            "{:?}",
            generation.text
        );
        assert_eq!((generation.finish, generation.tokens.last()), (Finish::EndOfText, Some(&END)));
        texts.insert(generation.text);
    }
    assert!(texts.len() > 8, "{texts:?}");
}

#[test]
fn logprobs_are_those_of_a_teacher_forced_pass() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let free = (0..4).map(|seed| request("what comes next? ", seed));
    let tempered = (4..6).map(|seed| Request {
        sampling: Sampling { temperature: 0.3, top_p: 0.5, seed },
        grammar: Some("root ::= [a-z]+".into()),
        ..request("what comes next? ", seed)
    });
    for generation in ask(&engine, free.chain(tempered).collect()) {
        let generation = generation.expect("generated");
        let exact = teacher_forced(&fixture.model, "what comes next? ", &generation.tokens).expect("recomputed");
        assert_eq!(exact.len(), generation.logprobs.len());
        for (got, exact) in generation.logprobs.iter().zip(&exact) {
            assert!((got - exact).abs() < 2e-2, "{got} instead of {exact}");
        }
    }
    let without = one(&engine, Request { logprobs: false, ..request("x", 0) }).expect("generated");
    assert!(without.logprobs.is_empty() && !without.tokens.is_empty());
}

#[test]
fn lengths_are_limited_and_impossible_ones_refused() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let endless = Request { grammar: Some("root ::= [a-z]*  [A-Z]".into()), ..request("x", 0) };
    let greedy = Sampling::GREEDY;
    for max_tokens in [1, 2, 9] {
        let generation = one(&engine, Request { max_tokens, sampling: greedy, ..endless.clone() }).expect("generated");
        if generation.finish == Finish::Length {
            assert_eq!(generation.tokens.len(), max_tokens as usize);
        }
    }
    let long = "y".repeat(2040);
    assert_eq!(
        one(&engine, Request { max_tokens: 8, ..request(&long, 0) }),
        Err(EngineError::PromptTooLong { tokens: 2049, limit: 2048 })
    );
    let fits = one(&engine, Request { max_tokens: 7, ..request(&long, 0) }).expect("the whole pool for one turn");
    assert_eq!(fits.prompt_tokens, 2041);
    assert!(matches!(
        one(&engine, Request { max_tokens: 0, ..request("x", 0) }),
        Err(EngineError::BadRequest { .. })
    ));
}

#[test]
fn wrong_grammars_fail_alone() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let wrong = ["root ::= ", "root ::= missing", "branch ::= \"a\"", "root ::= root \"a\" | \"b\"", "root ::= \"a\"{999999}", "root ::= (((", "\0root"];
    let mut requests = vec![request("x", 1)];
    requests.extend(wrong.iter().map(|text| Request { grammar: Some((*text).into()), ..request("x", 1) }));
    requests.push(request("x", 1));
    let answers = ask(&engine, requests);
    assert!(answers[0].is_ok() && answers[answers.len() - 1].is_ok());
    for (text, answer) in wrong.iter().zip(&answers[1..]).skip(1) {
        assert!(matches!(answer, Err(EngineError::Grammar { .. })), "{text:?}: {answer:?}");
    }
    // llama.cpp takes the empty rule: the text ends at once.
    assert_eq!(answers[1].as_ref().map(|g| g.text.as_str()), Ok(""));
}

#[test]
fn more_requests_than_sequences_and_cells_are_all_answered() {
    let fixture = fixture();
    let small = EngineSpec {
        context_tokens: 512,
        sequences_max: 4,
        batch_tokens: 16,
        ..spec(&fixture.model, Isolation::Process)
    };
    let engine = Engine::start(small).expect("started");
    let requests = (0..60).map(|n| request(&"z".repeat(1 + 7 * (n % 40)), n as u64)).collect();
    for (index, answer) in ask(&engine, requests).into_iter().enumerate() {
        let generation = answer.expect("generated");
        assert_eq!(generation.prompt_tokens as usize, 2 + 7 * (index % 40));
    }
    assert_eq!(engine.status().in_flight, 0);
    assert_eq!(engine.status().restarts, 0);
}

#[test]
fn processes_and_threads_give_the_same() {
    let fixture = fixture();
    let thread = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let process = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    for seed in 0..4 {
        assert_eq!(one(&thread, request("same? ", seed)), one(&process, request("same? ", seed)));
    }
}

#[tokio::test]
async fn generate_waits_without_blocking_and_shutdown_answers() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let (a, b) = futures::join!(engine.generate(request("a", 1)), engine.generate(request("b", 1)));
    assert!(a.is_ok() && b.is_ok());
    let pending = submit_all(&engine, (0..40).map(|seed| Request { max_tokens: 200, ..request("x", seed) }).collect());
    engine.shutdown();
    let answers = collect(&pending, 40);
    assert!(answers.contains(&Err(EngineError::Shutdown)), "{answers:?}");
    assert_eq!(engine.generate(request("late", 1)).await, Err(EngineError::Shutdown));
    assert!(!engine.status().ready && engine.status().worker_pid.is_none());
}

#[test]
fn a_killed_worker_is_replaced_and_no_turn_is_lost() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let long = |seed| Request { max_tokens: 200, ..request("on and on ", seed) };
    let expected = one(&engine, long(3)).expect("generated");
    let answers = submit_all(&engine, (0..20).map(long).collect());
    signal(&engine.status(), Signal::KILL);
    let answers = collect(&answers, 20);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[3].as_ref().map(|g| &g.tokens[..8]), Ok(&expected.tokens[..8]));
    let status = wait_for(&engine, |status| status.ready);
    assert_eq!(status.restarts, 1);
}

#[test]
fn a_stopped_worker_is_killed_at_the_deadline() {
    let fixture = fixture();
    let spec = EngineSpec { deadline_ms: 1500, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let before = engine.status();
    signal(&before, Signal::STOP);
    // Large prompts fill the socket too: a worker that does not read must not block the pump.
    let answers = ask(&engine, (0..4).map(|seed| request(&"w".repeat(400), seed)).collect());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let after = wait_for(&engine, |status| status.ready);
    assert_eq!(after.restarts, 1);
    assert_ne!(after.worker_pid, before.worker_pid);
}

#[test]
fn a_turn_that_kills_workers_is_answered_and_takes_no_other_with_it() {
    let fixture = fixture();
    let fault = Some(Fault::AbortOn("poison".to_owned()));
    let engine = Engine::start(EngineSpec { fault, ..spec(&fixture.model, Isolation::Process) }).expect("started");
    let mut requests: Vec<Request> = (0..10).map(|seed| request("harmless", seed)).collect();
    requests.insert(4, request("poison", 0));
    let answers = ask(&engine, requests);
    for (index, answer) in answers.iter().enumerate() {
        match answer {
            Err(EngineError::WorkerDied { detail }) if index == 4 => {
                assert!(detail.contains("86") && detail.contains("asked for by a test"), "{detail}");
            }
            other => assert!(index != 4 && other.is_ok(), "{index}: {other:?}"),
        }
    }
    assert_eq!(wait_for(&engine, |status| status.ready).restarts, 3);
}

#[test]
fn a_turn_that_hangs_workers_is_answered() {
    let fixture = fixture();
    let fault = Some(Fault::HangOn("poison".to_owned()));
    let spec = EngineSpec { fault, deadline_ms: 400, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let answers = ask(&engine, vec![request("poison", 0), request("harmless", 1)]);
    assert_eq!(answers[0], Err(EngineError::WorkerHung { deadline_ms: 400 }));
    assert!(answers[1].is_ok(), "{:?}", answers[1]);
}

#[test]
fn a_crash_loop_ends_in_a_restart_storm() {
    let fixture = fixture();
    let fault = Some(Fault::AbortOn("poison".to_owned()));
    let spec = EngineSpec { fault, restarts_max: 1, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let answers = ask(&engine, vec![request("poison", 0), request("harmless", 0)]);
    assert!(matches!(&answers[0], Err(EngineError::RestartStorm { restarts: 1, last, .. }) if last.contains("86")), "{answers:?}");
    assert!(matches!(one(&engine, request("later", 0)), Err(EngineError::RestartStorm { .. })));
    let status = engine.status();
    assert!(!status.ready && matches!(status.failure, Some(EngineError::RestartStorm { .. })), "{status:?}");
}

#[test]
fn a_file_that_is_no_model_is_named() {
    let fixture = fixture();
    let folder = fixture.model.parent().expect("a folder");
    let start = |path: &Path, isolation| Engine::start(spec(path, isolation)).map(drop);
    let whole = std::fs::read(&fixture.model).expect("model read");
    let cut = folder.join("cut.gguf");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let text = folder.join("text.gguf");
    std::fs::write(&text, "not a model").expect("written");
    for isolation in [Isolation::Thread, Isolation::Process] {
        assert!(matches!(start(&folder.join("none.gguf"), isolation), Err(EngineError::ModelMissing { .. })));
        assert!(matches!(start(&text, isolation), Err(EngineError::ModelForeign { .. })));
        assert!(matches!(start(&cut, isolation), Err(EngineError::ModelTruncated { .. })));
    }
    let other = folder.join("other.gguf");
    let at = whole.windows(5).position(|window| window == b"llama").expect("the architecture");
    let mut renamed = whole;
    renamed[at..at + 5].copy_from_slice(b"lamma");
    std::fs::write(&other, renamed).expect("written");
    let error = start(&other, Isolation::Process);
    assert!(matches!(&error, Err(EngineError::ModelRejected { detail, .. }) if detail.contains("lamma")), "{error:?}");
}

#[test]
fn devices_are_listed_and_missing_ones_named() {
    let fixture = fixture();
    let listed = devices_of(Some(&worker())).expect("listed");
    assert!(listed.iter().any(|device| device.name == "CPU" && device.memory_total_bytes > 0), "{listed:?}");
    for device in ["CUDA7", "GPU-00000000-1111-2222-3333-444444444444"] {
        let device: Device = device.parse().expect("a device");
        let spec = EngineSpec { device, ..spec(&fixture.model, Isolation::Process) };
        let error = Engine::start(spec).map(drop);
        assert!(matches!(&error, Err(EngineError::DeviceMissing { found, .. }) if !found.is_empty()), "{error:?}");
    }
}

#[test]
fn a_worker_that_is_none_is_an_error() {
    let fixture = fixture();
    for worker in ["/bin/false", "/nonexistent"] {
        let spec = EngineSpec { worker: Some(worker.into()), ..spec(&fixture.model, Isolation::Process) };
        assert!(matches!(Engine::start(spec).map(drop), Err(EngineError::WorkerDied { .. })));
    }
}

#[test]
fn flipped_bits_in_a_header_never_take_the_parent_down() {
    let fixture = fixture();
    let whole = std::fs::read(&fixture.model).expect("model read");
    let header = whole.windows(9).rposition(|window| window == b"ffn_down.").expect("the last tensor's entry");
    let path = fixture.model.with_file_name("flipped.gguf");
    let (mut loaded, mut refused) = (0, 0);
    for flip in 0..200_usize {
        let mut bytes = whole.clone();
        // A step that is coprime to the header's length spreads the flips over all of it.
        let bit = flip * 8 * header / 200 + flip % 8;
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, bytes).expect("written");
        let spec = EngineSpec { start_timeout_ms: 20_000, ..spec(&path, Isolation::Process) };
        match Engine::start(spec) {
            Ok(engine) => {
                loaded += 1;
                engine.shutdown();
            }
            Err(_) => refused += 1,
        }
    }
    assert_eq!(loaded + refused, 200);
    assert!(refused > 20, "{refused} refused, {loaded} loaded");
}
