//! Engines whose workers start when they are needed, and end when they are not.

use prime_engine::{Engine, EngineError, EngineSpec, Isolation};

use super::{fixture, one, request, spec, wait_for};

#[test]
fn a_worker_starts_with_the_first_request_and_again_after_its_rest() {
    let fixture = fixture();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let engine =
            Engine::start(EngineSpec { idle_stop_ms: 1, ..spec(&fixture.model, isolation) })
                .expect("started");
        let status = engine.status();
        assert!(
            status.idle && !status.ready && status.model.is_empty(),
            "{isolation:?}: {status:?}"
        );

        let first = one(&engine, request("on and on ", 3)).expect("generated");
        let rested = wait_for(&engine, |status| status.idle);
        assert!(
            !rested.ready && rested.worker_pid.is_none() && rested.restarts == 0,
            "{isolation:?}: {rested:?}"
        );

        assert_eq!(
            one(&engine, request("on and on ", 3)).expect("generated again").tokens,
            first.tokens
        );

        engine.shutdown();
        assert!(!engine.status().idle);
    }
}

#[test]
fn a_model_that_cannot_be_loaded_is_named_to_each_request() {
    let fixture = fixture();
    std::fs::write(&fixture.model, "no model").expect("written");
    let engine = Engine::start(EngineSpec {
        idle_stop_ms: 60_000,
        ..spec(&fixture.model, Isolation::Process)
    });
    let engine = engine.expect("nothing is loaded yet");

    for seed in 0..2 {
        let refused = one(&engine, request("x", seed)).expect_err("no model");
        assert!(!matches!(refused, EngineError::Shutdown), "{refused}");
        assert!(refused.to_string().contains("tiny.gguf"), "{refused}");
    }
}
