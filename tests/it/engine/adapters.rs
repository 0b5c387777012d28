//! Adapters: what they change, contexts that share one set of weights in one worker, and what
//! becomes of them when files change and the worker dies.

use std::path::{Path, PathBuf};

use prime_engine::{
    Adapter, Engine, EngineError, EngineSpec, Generation, Isolation, Request, Sampling, Scale,
};
use prime_engine_testing::{TinyAdapter, TinyModel, teacher_forced};
use rustix::process::{Pid, Signal, kill_process};

use super::{Fixture, ask, collect, fixture, one, request, spec, submit_all, wait_for};

/// As for cached prefixes: the order of sums and the 16-bit KV pool.
const TOLERANCE: f64 = 0.05;

fn written(fixture: &Fixture, name: &str, adapter: &TinyAdapter) -> PathBuf {
    let path = fixture.model.with_file_name(name);
    adapter.write(&TinyModel::default(), &path).expect("adapter written");
    path
}

fn seeded(seed: u64) -> TinyAdapter {
    TinyAdapter { seed, ..TinyAdapter::default() }
}

fn scaled(path: &Path, scale: f32) -> Adapter {
    let scale = Scale::try_from(scale).expect("a scale");
    Adapter { scale, ..Adapter::read(path).expect("read") }
}

fn greedy(prompt: &str) -> Request {
    Request { sampling: Sampling::GREEDY, ignore_end: true, ..request(prompt, 0) }
}

/// The first tokens: batches of another composition round otherwise, which shows after many.
fn first(generation: &Generation) -> &[u32] {
    &generation.tokens[..8]
}

fn kill(engine: &Engine) {
    let pid = engine.status().worker_pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
    kill_process(pid.expect("a worker process"), Signal::KILL).expect("signal sent");
}

#[track_caller]
fn assert_is_of(model: &Path, prompt: &str, generation: &Generation) {
    let right = teacher_forced(model, prompt, &generation.tokens).expect("computed");
    assert_eq!(generation.logprobs.len(), right.len());
    for (got, right) in generation.logprobs.iter().zip(&right) {
        assert!((f64::from(*got) - right).abs() < TOLERANCE, "{got} instead of {right}");
    }
}

#[test]
fn an_adapter_is_as_if_it_were_merged_and_scale_0_as_if_it_were_not_there() {
    let fixture = fixture();
    let path = written(&fixture, "a.gguf", &seeded(5));
    for isolation in [Isolation::Process, Isolation::Thread] {
        let base = Engine::start(spec(&fixture.model, isolation)).expect("started");
        let plain = one(&base, greedy("once upon")).expect("generated");
        assert_is_of(&fixture.model, "once upon", &plain);

        let off = base.with_adapters(&[scaled(&path, 0.0)]).expect("opened");
        assert_eq!(one(&off, greedy("once upon")).expect("generated"), plain);

        for scale in [1.0, 0.5, -1.0] {
            let merged = fixture.model.with_file_name(format!("merged{scale}.gguf"));
            TinyModel::default().write_merged(&merged, &seeded(5), scale).expect("written");
            let adapted = base.with_adapters(&[scaled(&path, scale)]).expect("opened");
            let generation = one(&adapted, greedy("once upon")).expect("generated");
            assert_is_of(&merged, "once upon", &generation);
            assert_ne!(generation.tokens, plain.tokens, "scale {scale}");
        }
        assert_eq!(base.contexts().len(), 2, "contexts that nobody holds are gone");
    }
}

#[test]
fn contexts_with_adapters_share_one_worker_and_its_death_costs_each_turn_one_retry() {
    let fixture = fixture();
    let base = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let adapted = |seed: u64| {
        let path = written(&fixture, &format!("{seed}.gguf"), &seeded(seed));
        base.with_adapters(&[scaled(&path, 1.0)]).expect("opened")
    };
    let engines = [base.clone(), adapted(1), adapted(2)];
    let pids = engines.each_ref().map(|engine| engine.status().worker_pid);
    assert!(pids[0].is_some() && pids == [pids[0]; 3], "{pids:?}");

    let long = || Request { max_tokens: 300, ..greedy("on and on ") };
    let undisturbed = engines.each_ref().map(|engine| one(engine, long()).expect("generated"));
    assert_ne!(first(&undisturbed[0]), first(&undisturbed[1]));
    assert_ne!(first(&undisturbed[1]), first(&undisturbed[2]));

    let answers =
        engines.each_ref().map(|engine| submit_all(engine, (0..12).map(|_| long()).collect()));
    // Each context computes turns when the worker dies.
    for engine in &engines {
        wait_for(engine, |status| status.counts.live > 0);
    }
    kill(&base);

    for ((answers, expected), engine) in answers.iter().zip(&undisturbed).zip(&engines) {
        for answer in collect(answers, 12) {
            assert_eq!(first(&answer.expect("generated")), first(expected));
        }
        assert_eq!(wait_for(engine, |status| status.ready).restarts, 1);
    }
    let pids = engines.each_ref().map(|engine| engine.status().worker_pid);
    assert_eq!(pids, [pids[0]; 3]);
}

#[test]
fn a_context_keeps_the_content_that_its_adapter_had() {
    let fixture = fixture();
    let path = written(&fixture, "a.gguf", &seeded(1));
    let before = scaled(&path, 1.0);
    let spec =
        EngineSpec { adapters: vec![before.clone()], ..spec(&fixture.model, Isolation::Process) };
    let old = Engine::start(spec).expect("started");
    let said = one(&old, greedy("once upon")).expect("generated");
    assert!(old.status().name.starts_with("test+a-"), "{}", old.status().name);

    // The file is exchanged: a new context has the new content, the old one keeps its own.
    written(&fixture, "a.gguf", &seeded(2));
    let new = old.with_adapters(&[scaled(&path, 1.0)]).expect("opened");
    let other = one(&new, greedy("once upon")).expect("generated");
    assert_ne!(first(&other), first(&said));
    assert_eq!(first(&one(&old, greedy("once upon")).expect("generated")), first(&said));

    // A new worker finds only the new content. The old context says so, and its turns wait for
    // their adapter instead of getting another.
    kill(&old);
    assert_eq!(first(&one(&new, greedy("once upon")).expect("generated")), first(&other));
    let status = wait_for(&old, |status| status.failure.is_some());
    assert!(
        matches!(&status.failure, Some(EngineError::AdapterChanged { wanted, .. })
            if Some(wanted) == before.digest.as_ref()),
        "{status:?}"
    );

    let waiting = submit_all(&old, vec![greedy("once upon")]);
    written(&fixture, "a.gguf", &seeded(1));
    old.restart();
    assert_eq!(first(collect(&waiting, 1)[0].as_ref().expect("generated")), first(&said));
    assert_eq!(old.status().failure, None);
}

#[test]
fn an_adapter_that_does_not_fit_is_refused_and_the_other_contexts_go_on() {
    let fixture = fixture();
    let base = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let refused = |path: &Path| {
        base.with_adapters(&[scaled(path, 1.0)]).map(drop).expect_err("refused").to_string()
    };

    let wide = fixture.model.with_file_name("wide.gguf");
    let wider = TinyModel { width: 128, ..TinyModel::default() };
    seeded(1).write(&wider, &wide).expect("written");
    let said = refused(&wide);
    assert!(
        said.contains("blk.0.attn_q.weight as a matrix of 128 x 128, and the model's has 64 x 64"),
        "{said}"
    );

    let deep = fixture.model.with_file_name("deep.gguf");
    let deeper = TinyModel { layers: 3, ..TinyModel::default() };
    seeded(1).write(&deeper, &deep).expect("written");
    let said = refused(&deep);
    assert!(
        said.contains("it changes blk.2.attn_q.weight, which the model does not have"),
        "{said}"
    );

    let alien = TinyAdapter { architecture: "qwen3".to_owned(), ..seeded(1) };
    let said = refused(&written(&fixture, "alien.gguf", &alien));
    assert!(said.contains("architecture `qwen3`, and this one is `llama`"), "{said}");

    let said = refused(&fixture.model);
    assert!(said.contains("its general.type says nothing instead of `adapter`"), "{said}");

    let text = fixture.model.with_file_name("text.gguf");
    std::fs::write(&text, "not an adapter").expect("written");
    assert!(refused(&text).contains("it is not a GGUF file"));

    let missing = fixture.model.with_file_name("missing.gguf");
    let error = Adapter::read(&missing).expect_err("missing");
    assert!(matches!(error, EngineError::AdapterMissing { .. }), "{error}");

    let answers = ask(&base, vec![greedy("once upon")]);
    assert!(answers[0].is_ok(), "{answers:?}");
    assert_eq!((base.status().restarts, base.contexts().len()), (0, 1));
}

#[test]
fn engines_of_one_model_share_its_weights_and_others_do_not() {
    let fixture = fixture();
    let first = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let wider = EngineSpec {
        name: "wider".to_owned(),
        context_tokens: 4096,
        ..spec(&fixture.model, Isolation::Process)
    };
    let second = first.beside(wider.clone()).expect("opened");
    assert_eq!(first.status().worker_pid, second.status().worker_pid);
    assert_eq!((first.status().context_tokens, second.status().context_tokens), (2048, 4096));

    // The first one's end is not the second one's.
    let waiting = submit_all(&first, vec![Request { max_tokens: 500, ..greedy("on and on ") }]);
    first.shutdown();
    assert_eq!(collect(&waiting, 1), [Err(EngineError::Shutdown)]);
    assert!(one(&second, greedy("w")).is_ok());
    assert_eq!(first.status().failure, Some(EngineError::Shutdown));
    assert!(one(&first, greedy("w")) == Err(EngineError::Shutdown));

    let elsewhere = EngineSpec { model: "other.gguf".into(), ..wider };
    assert!(matches!(second.beside(elsewhere), Err(EngineError::BadSpec { .. })));
    second.shutdown();
    assert!(matches!(
        second.with_adapters(&[scaled(&written(&fixture, "a.gguf", &seeded(1)), 1.0)]),
        Err(EngineError::Shutdown)
    ));
}
