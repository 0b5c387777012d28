//! Runs of agents that cost nothing, so that what is left is coordination.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use prime_agent_set::{
    AgentSet, Names, NullExecutor, RulesVerifier, ThresholdCoordinator, null_problem,
};
use prime_bench::tasks::{Kind, Kinds};
use prime_protocol::{RunPlan, Score, Thresholds};
use prime_runtime::{
    Diversity, Placement, RestartLimit, RunSampling, Runtime, RuntimePlan, Silent, Submission,
};

fn null_agents() -> AgentSet {
    let kinds: Kinds = [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect();
    let thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };
    AgentSet::of(
        Names {
            executor: "null".into(),
            verifier: "rules".into(),
            coordinator: "threshold".into(),
            locator: None,
        },
        || Arc::new(NullExecutor::with_payload(0)),
        move || Arc::new(RulesVerifier::new(kinds)),
        move || Arc::new(ThresholdCoordinator(thresholds)),
    )
}

/// Starts a runtime of one cell. Must be called within an actix system.
pub fn start(placement: Placement) -> Runtime {
    let plan = RuntimePlan {
        cells: 1,
        placement,
        restart_limit: RestartLimit { restarts_max: 1, window: Duration::from_secs(1) },
        hang_after: None,
        in_flight_max: u32::MAX,
    };

    Runtime::start(&plan, Arc::new(null_agents()))
}

/// Takes `steps` steps in each of `trajectories` trajectories side by side, every one a run of its
/// own.
pub async fn go_round(runtime: &Runtime, trajectories: u64, steps: u64) {
    let problem = null_problem(steps);
    let mut handles: Vec<_> = (0..trajectories)
        .map(|seed| {
            runtime.submit(Submission {
                problem: Arc::clone(&problem),
                plan: RunPlan::single(steps + 1),
                sampling: RunSampling {
                    temperature: 0.0,
                    top_p: 1.0,
                    seed,
                    diversity: Diversity::default(),
                },
                observer: Arc::new(Silent),
                suspended: None,
            })
        })
        .collect();

    for outcome in join_all(handles.iter_mut().map(|handle| handle.outcome())).await {
        let outcome = outcome.expect("the runtime lives");
        assert!(outcome.is_verified() && outcome.steps == steps, "{outcome:?}");
    }
}
