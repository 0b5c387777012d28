//! Failures that an engine survives: dead, hung and poisoned workers, wrong files, wrong devices.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use prime_engine::{
    Device, Engine, EngineError, EngineSpec, EngineStatus, Fault, Isolation, Request, devices_of,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::{PATIENCE, ask, collect, fixture, one, request, spec, submit_all, wait_for, worker};

fn signal(status: &EngineStatus, signal: Signal) {
    let pid = status
        .worker_pid
        .and_then(|pid| Pid::from_raw(pid.cast_signed()))
        .expect("a worker process");
    kill_process(pid, signal).expect("signal sent");
}

#[test]
fn a_killed_worker_is_replaced_and_no_turn_is_lost() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let long = |seed| Request { max_tokens: 200, ..request("on and on ", seed) };
    let expected = one(&engine, long(3)).expect("generated");
    let answers = submit_all(&engine, (0..20).map(long).collect());

    // The first answer shows that the others are being computed.
    signal(&wait_for(&engine, |status| status.in_flight < 20), Signal::KILL);

    let answers = collect(&answers, 20);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[3].as_ref().map(|g| &g.tokens[..8]), Ok(&expected.tokens[..8]));

    let status = wait_for(&engine, |status| status.ready);
    assert_eq!(status.restarts, 1);
}

/// A deadline that a healthy worker meets, however slow the machine is at present, and a hung one
/// misses soon: a multiple of the time of a turn.
fn deadline_ms(model: &Path) -> u64 {
    let engine = Engine::start(spec(model, Isolation::Process)).expect("started");
    let started = Instant::now();
    one(&engine, request("harmless", 1)).expect("generated");
    let turn_ms = u64::try_from(started.elapsed().as_millis()).expect("short");
    (50 * turn_ms).max(400)
}

#[test]
fn a_stopped_worker_is_killed_at_the_deadline() {
    let fixture = fixture();
    let deadline_ms = deadline_ms(&fixture.model).max(1500);
    let spec = EngineSpec { deadline_ms, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let before = engine.status();
    signal(&before, Signal::STOP);

    // The large ones, which are refused in the end, fill the socket: a worker that does not read
    // must not block the pump, which watches the deadline.
    let large = (0..4).map(|seed| request(&"w ".repeat(150_000), seed));
    let answers = ask(&engine, large.chain((0..4).map(|seed| request("w", seed))).collect());

    assert!(
        answers[..4].iter().all(|a| matches!(a, Err(EngineError::PromptTooLong { .. }))),
        "{answers:?}"
    );
    assert!(answers[4..].iter().all(Result::is_ok), "{answers:?}");

    let after = wait_for(&engine, |status| status.ready);
    assert_eq!(after.restarts, 1);
    assert_ne!(after.worker_pid, before.worker_pid);
}

#[test]
fn a_turn_that_kills_workers_is_answered_and_takes_no_other_with_it() {
    let fixture = fixture();
    let fault = Some(Fault::AbortOn("poison".to_owned()));
    let engine = Engine::start(EngineSpec { fault, ..spec(&fixture.model, Isolation::Process) })
        .expect("started");
    let mut requests: Vec<Request> = (0..10).map(|seed| request("harmless", seed)).collect();
    requests.insert(4, request("poison", 0));

    let answers = ask(&engine, requests);
    for (index, answer) in answers.iter().enumerate() {
        match answer {
            Err(EngineError::WorkerDied { detail }) if index == 4 => {
                assert!(
                    detail.contains("86") && detail.contains("asked for by a test"),
                    "{detail}"
                );
            }
            other => assert!(index != 4 && other.is_ok(), "{index}: {other:?}"),
        }
    }

    assert_eq!(wait_for(&engine, |status| status.ready).restarts, 4);
}

#[test]
fn a_turn_that_hangs_workers_is_answered() {
    let fixture = fixture();
    let fault = Some(Fault::HangOn("poison".to_owned()));
    let deadline_ms = deadline_ms(&fixture.model);
    let spec = EngineSpec { fault, deadline_ms, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let answers = ask(&engine, vec![request("poison", 0), request("harmless", 1)]);
    assert_eq!(answers[0], Err(EngineError::WorkerHung { deadline_ms }));
    assert!(answers[1].is_ok(), "{:?}", answers[1]);
}

#[test]
fn a_lost_engine_comes_back_and_only_the_turn_that_killed_it_fails() {
    let fixture = fixture();
    let fault = Some(Fault::AbortOn("poison".to_owned()));
    let spec = EngineSpec { fault, restarts_max: 1, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");

    let answers = submit_all(&engine, vec![request("poison", 0), request("harmless", 0)]);
    let lost = wait_for(&engine, |status| status.failure.is_some());
    assert!(
        matches!(&lost.failure, Some(EngineError::Lost { deaths: 2, last, .. }) if last.contains("86"))
            && !lost.ready,
        "{lost:?}"
    );

    engine.restart();
    let answers = collect(&answers, 2);
    assert!(
        matches!(&answers[0], Err(EngineError::WorkerDied { .. })) && answers[1].is_ok(),
        "{answers:?}"
    );

    assert!(one(&engine, request("later", 0)).is_ok());
    assert_eq!(engine.status().failure, None);
}

#[test]
fn no_turn_fails_by_kills_that_it_did_not_cause() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let long = |seed| Request { max_tokens: 200, ..request("on and on ", seed) };
    let answers = submit_all(&engine, (0..10).map(long).collect());

    // More than `restarts_max`: in the end the engine is lost.
    let mut before = None;
    for _ in 0..6 {
        let status = wait_for(&engine, |status| status.ready && status.worker_pid != before);
        before = status.worker_pid;
        signal(&status, Signal::KILL);
    }
    wait_for(&engine, |status| matches!(status.failure, Some(EngineError::Lost { .. })));

    engine.restart();
    let answers = collect(&answers, 10);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(engine.status().failure, None);
}

/// The deadline of a stopped worker runs on, whatever becomes of the turns that it has.
#[test]
fn a_stopped_worker_is_replaced_though_its_turns_are_cancelled() {
    let fixture = fixture();
    let spec = EngineSpec { deadline_ms: 1500, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");

    signal(&engine.status(), Signal::STOP);
    let started = Instant::now();
    while engine.status().restarts == 0 {
        assert!(started.elapsed() < PATIENCE, "it was not replaced: {:?}", engine.status());
        assert!(
            engine.generate(request("w", 0)).now_or_never().is_none(),
            "a stopped worker answers nothing"
        );
        wait_for(&engine, |status| status.in_flight == 0);
    }

    assert!(one(&engine, request("later", 0)).is_ok());
}

#[test]
fn a_file_that_is_not_a_model_is_refused_by_kind() {
    let fixture = fixture();
    let folder = fixture.model.parent().expect("a folder");
    let start = |path: &Path, isolation| Engine::start(spec(path, isolation)).map(drop);
    let whole = std::fs::read(&fixture.model).expect("model read");
    let cut = folder.join("cut.gguf");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let text = folder.join("text.gguf");
    std::fs::write(&text, "not a model").expect("written");

    for isolation in [Isolation::Thread, Isolation::Process] {
        assert!(matches!(
            start(&folder.join("none.gguf"), isolation),
            Err(EngineError::ModelMissing { .. })
        ));
        assert!(matches!(start(&text, isolation), Err(EngineError::ModelForeign { .. })));
        assert!(matches!(start(&cut, isolation), Err(EngineError::ModelTruncated { .. })));
    }

    let other = folder.join("other.gguf");
    let at = whole.windows(5).position(|window| window == b"llama").expect("the architecture");
    let mut renamed = whole;
    renamed[at..at + 5].copy_from_slice(b"lamma");
    std::fs::write(&other, renamed).expect("written");

    let error = start(&other, Isolation::Process);
    assert!(
        matches!(&error, Err(EngineError::ModelRejected { detail, .. }) if detail.contains("lamma")),
        "{error:?}"
    );
}

#[test]
fn devices_are_listed_and_missing_ones_named() {
    let fixture = fixture();
    let listed = devices_of(Some(&worker())).expect("listed");
    assert!(
        listed.iter().any(|device| device.name == "CPU" && device.memory_total_bytes > 0),
        "{listed:?}"
    );

    for device in ["CUDA7", "GPU-00000000-1111-2222-3333-444444444444", "pci:ffff:ff:1f.7"] {
        let device: Device = device.parse().expect("a device");
        let spec = EngineSpec { device: device.into(), ..spec(&fixture.model, Isolation::Process) };
        let error = Engine::start(spec).map(drop);
        assert!(
            matches!(&error, Err(EngineError::DeviceMissing { found, .. }) if !found.is_empty()),
            "{error:?}"
        );
    }
}

#[test]
fn a_pool_larger_than_memory_is_refused_with_the_numbers() {
    let fixture = fixture();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let spec = EngineSpec { context_tokens: 1 << 30, ..spec(&fixture.model, isolation) };
        let error = Engine::start(spec).map(drop).expect_err("no machine has a terabyte of memory");
        let EngineError::WontFit(shortage) = &error else { panic!("{error}") };
        // Two layers, 64 keys and 64 values, 16 bits.
        assert_eq!(shortage.kv_bytes, 512 << 30);
        assert!(shortage.needed_bytes > shortage.free_bytes, "{error}");
        assert!(error.to_string().contains("lower context_tokens to "), "{error}");
    }
}

#[test]
fn a_worker_inherits_only_the_environment_that_it_needs() {
    let fixture = fixture();
    let spec =
        EngineSpec { device: Device::Cpu.into(), ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let pid = engine.status().worker_pid.expect("a worker process");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("environment read");
    let environment = String::from_utf8_lossy(&environment);
    let names: Vec<&str> =
        environment.split('\0').filter_map(|pair| pair.split('=').next()).collect();

    assert!(
        std::env::vars().any(|(name, _)| name == "CARGO_MANIFEST_DIR"),
        "the parent has more variables than it passes on"
    );

    let known = [
        "PATH",
        "LD_LIBRARY_PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "GGML_NO_BACKTRACE",
        "GLIBC_TUNABLES",
        "",
    ];
    let cuda_or_openmp =
        |name: &str| ["CUDA_", "OMP_", "GOMP_"].iter().any(|prefix| name.starts_with(prefix));

    assert!(names.iter().all(|name| known.contains(name) || cuda_or_openmp(name)), "{names:?}");
    assert!(environment.contains("CUDA_VISIBLE_DEVICES=\0"), "a worker on the CPU sees no GPU");
    assert!(
        environment.contains("CUDA_DEVICE_ORDER=PCI_BUS_ID\0"),
        "indices mean the same everywhere"
    );
}

/// The parent that [`a_worker_dies_with_its_parent`] kills, in a process of its own, for which
/// `TINY_MODEL` is set. Does nothing in an ordinary test run.
#[test]
fn parent_to_be_killed() {
    let Some(model) = std::env::var_os("TINY_MODEL") else { return };
    let engine = Engine::start(spec(Path::new(&model), Isolation::Process)).expect("started");
    println!("worker {}", engine.status().worker_pid.expect("a worker process"));
    // Busy, so that the worker does not notice the closed socket first.
    loop {
        ask(&engine, (0..8).map(|seed| request("busy", seed)).collect());
    }
}

#[test]
fn a_worker_dies_with_its_parent() {
    let fixture = fixture();
    let mut parent = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "engine::survival::parent_to_be_killed", "--nocapture"])
        .env("TINY_MODEL", &fixture.model)
        .stdout(Stdio::piped())
        .spawn()
        .expect("parent started");

    let output = BufReader::new(parent.stdout.take().expect("a pipe"));
    let pid = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| {
            line.split_once("worker ").and_then(|(_, pid)| pid.trim().parse::<i32>().ok())
        })
        .expect("the worker's process id");

    let worker = Pid::from_raw(pid).expect("a process id");
    assert!(test_kill_process(worker).is_ok(), "the worker lives");

    parent.kill().expect("parent killed");
    parent.wait().expect("parent waited for");

    let started = Instant::now();
    // A zombie (state Z), which its new parent has not waited for yet, is dead too.
    while std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z "))
    {
        assert!(started.elapsed() < PATIENCE, "the worker outlived its parent");
        std::thread::yield_now();
    }
}

#[test]
fn a_binary_that_is_not_a_worker_is_an_error() {
    let fixture = fixture();
    for worker in ["/bin/false", "/nonexistent"] {
        let spec =
            EngineSpec { worker: Some(worker.into()), ..spec(&fixture.model, Isolation::Process) };
        assert!(matches!(Engine::start(spec).map(drop), Err(EngineError::WorkerDied { .. })));
    }
}

/// Number of mutated files; `PRIME_GGUF_MUTATIONS=100000` for a nightly run.
fn mutations() -> usize {
    std::env::var("PRIME_GGUF_MUTATIONS").map_or(1000, |text| text.parse().expect("a number"))
}

/// A copy of a model file with some damage, mostly in the header, which is what a reader
/// interprets.
fn mutated(whole: &[u8], header: usize, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let end = if rng.random_bool(0.8) { header } else { whole.len() };
    let at = rng.random_range(0..end);
    let run = rng.random_range(1..=16).min(bytes.len() - at);

    match rng.random_range(0..8) {
        0..=2 => bytes[at] ^= 1 << rng.random_range(0..8),
        3 => bytes.truncate(at),
        4 => bytes[at..at + run].fill(if rng.random() { 0 } else { 0xFF }),
        5 => rng.fill(&mut bytes[at..at + run]),
        6 => drop(bytes.drain(at..at + run)),
        _ => {
            let copied = bytes[at..at + run].to_vec();
            bytes.splice(at..at, copied);
        }
    }
    bytes
}

#[test]
fn damaged_model_files_never_take_the_parent_down() {
    let fixture = fixture();
    let healthy = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let whole = std::fs::read(&fixture.model).expect("model read");
    let header = whole
        .windows(9)
        .rposition(|window| window == b"ffn_down.")
        .expect("the last tensor's entry")
        + 60;

    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut loaded, mut named) = (0, 0);

    for mutation in 0..mutations() {
        let bytes = mutated(&whole, header, &mut rng);
        let path = fixture.model.with_file_name("mutated.gguf");
        std::fs::write(&path, &bytes).expect("written");
        let spec = EngineSpec { start_timeout_ms: 20_000, ..spec(&path, Isolation::Process) };
        match Engine::start(spec) {
            Ok(engine) => {
                loaded += 1;
                // Whatever the weights are now, there is an answer; a crash loop ends with one,
                // too.
                drop(one(&engine, Request { max_tokens: 2, ..request("x", mutation as u64) }));
                engine.shutdown();
            }
            Err(
                EngineError::ModelForeign { .. }
                | EngineError::ModelTruncated { .. }
                | EngineError::ModelRejected { .. }
                | EngineError::WontFit(_)
                | EngineError::NotFinite,
            ) => named += 1,
            // llama.cpp may abort on what no check covers, which takes only the worker down.
            Err(EngineError::WorkerDied { .. } | EngineError::WorkerHung { .. }) => {}
            Err(other) => panic!("mutation {mutation}: {other}"),
        }
    }

    let all = mutations();
    assert!(
        named * 10 > all * 3 && loaded * 10 > all,
        "of {all}: {named} refused by name, {loaded} loaded"
    );
    let deaths = all - named - loaded;
    assert!(
        deaths * 20 < all,
        "{deaths} of {all} files took their worker down instead of being refused"
    );

    assert!(one(&healthy, request("still here", 1)).is_ok());
    assert_eq!(healthy.status().restarts, 0);
}

#[test]
fn a_worker_that_is_silent_for_many_decodes_is_killed_before_the_deadline() {
    let fixture = fixture();
    let spec = EngineSpec { deadline_ms: 600_000, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");

    // Enough decodes for a percentile.
    let lines: Arc<str> = "root ::= [a-z]{1000}".into();
    let long = Request { grammar: Some(lines), max_tokens: 500, ..request("x", 0) };
    one(&engine, long.clone()).expect("generated");

    let status = wait_for(&engine, |status| status.counts.decode_p99_us > 0);
    signal(&status, Signal::STOP);

    // `one` waits for less than the deadline of ten minutes.
    let answer = one(&engine, long);
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(engine.status().restarts, 1);
}
