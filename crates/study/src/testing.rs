//! Records for tests.

use crate::records::{Key, Provenance, Record, StageOutcome, Status};
use prime_bench::tasks::{Kind, find};

/// The run as if its verifier had looked at these kinds, which commas separate.
pub fn checked_by(kinds: &str, mut run: Record) -> Record {
    let sound = find(&run.task).expect("a task").spec().sound;
    run.set_kinds(kinds.split(',').filter_map(|kind| kind.parse::<Kind>().ok()).collect(), sound);
    run
}

/// A right and accepted run.
pub fn record(system: &str, task: &str, index: u32) -> Record {
    let key = Key {
        system: system.to_owned(),
        task: task.to_owned(),
        difficulty: "easy".to_owned(),
        index,
        base_seed: 7,
        repeat: 0,
    };

    let provenance = Provenance {
        version: "0.1.0".to_owned(),
        config_hash: "abc".to_owned(),
        model_digest: Some("sha256:1".to_owned()),
        machine: "2 cores".to_owned(),
        verifier: "rules".to_owned(),
        kinds: vec![Kind::Format, Kind::Invariant, Kind::Terminal],
        ..Provenance::default()
    };

    let spec = find(task).expect("a task").spec();
    Record {
        study: "test".to_owned(),
        status: Status::Measured,
        answer: Some("{\"queens\":[1,3,0,2]}".to_owned()),
        right: true,
        accepted: true,
        format: StageOutcome::Passed,
        syntax: StageOutcome::Passed,
        semantic: StageOutcome::Passed,
        result: StageOutcome::Passed,
        partial_credit: Some(1.0),
        efficiency: Some(1.0),
        reference_steps: 10,
        steps: 10,
        proposals: 44,
        retries: 3,
        steps_retried: Some(2),
        backtracks: 1,
        rounds: 1,
        trajectories: 4,
        votes: Some(4),
        agreement: Some(1.0),
        prompt_tokens: 900,
        completion_tokens: 120,
        wall_ms: 1_500.0 + f64::from(index),
        executor_ms: Some(1_200.0),
        verifier_ms: Some(30.0),
        coordinator_ms: Some(1.0),
        coordination_share: Some(0.01),
        sampling_seed: 42,
        started_at: "2026-11-23T12:00:00Z".to_owned(),
        ..Record::not_measured(key, spec, &provenance)
    }
}

/// The same run with a wrong answer and an error of this type.
pub fn wrong(record: Record, error: &str) -> Record {
    Record {
        right: false,
        accepted: false,
        semantic: StageOutcome::Failed,
        result: StageOutcome::Failed,
        partial_credit: Some(0.5),
        first_error_step: Some(4),
        first_error_pct: Some(40.0),
        first_error_type: Some(error.to_owned()),
        severity: Some("major".to_owned()),
        ..record
    }
}
