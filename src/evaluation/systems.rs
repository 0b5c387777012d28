//! Systems for tests: the scripted executor with an error rate, and any verifier.

use std::sync::Arc;

use super::comparison::System;
use prime_agent_set::{
    AgentSet, Executor, Names, ScriptedExecutor, ThresholdCoordinator, Verifier,
};
use prime_protocol::{Limits, RunPlan, Score, Thresholds};
use prime_runtime::{Diversity, Placement, RestartLimit, RunSampling, RuntimePlan};

/// One cell.
pub fn runtime_plan() -> RuntimePlan {
    RuntimePlan {
        cells: 1,
        placement: Placement::Shared,
        restart_limit: RestartLimit { restarts_max: 0, window: std::time::Duration::from_secs(1) },
        hang_after: None,
        in_flight_max: 64,
    }
}

/// One trajectory, one round.
pub fn plan() -> RunPlan {
    let limits =
        Limits { attempts_max: 8, pops_max: 64, snapshot_every_frames: 64, ..Limits::DEFAULT };
    RunPlan { confidence: 0.5, limits, ..RunPlan::single(1) }
}

pub fn system<V: Verifier + 'static>(
    executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
    verifier: impl Fn() -> V + Send + Sync + 'static,
    plan: &RunPlan,
) -> System {
    let names = Names {
        executor: "test".into(),
        verifier: "test".into(),
        coordinator: "test".into(),
        locator: None,
    };

    let thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };

    let judge = verifier();
    let plan = plan.clone();
    let agents = AgentSet::of(
        names,
        executor,
        move || Arc::new(verifier()),
        move || Arc::new(ThresholdCoordinator(thresholds)),
    );

    let sampling =
        RunSampling { temperature: 0.7, top_p: 1.0, seed: 42, diversity: Diversity::default() };
    System {
        agents,
        plan: Box::new(move |problem| RunPlan {
            basis: judge.basis(problem.spec()).on(problem),
            ..plan.clone()
        }),
        sampling,
    }
}

pub fn scripted(error_rate: f64) -> impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static {
    move || Arc::new(ScriptedExecutor::new(error_rate))
}
