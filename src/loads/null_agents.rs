//! Agents that do nothing, so that only coordination is measured.

use std::sync::Arc;

use super::fault_injection::{Fault, Faulty};
use super::plan::Faults;
use prime_agent_set::{
    AgentSet, Coordinator, Executor, Names, RulesVerifier, ThresholdCoordinator, Verifier,
};
use prime_bench::tasks::{Kind, Kinds};
use prime_loadtest::PreciseTimer;
use prime_protocol::{Role, Score, Thresholds};

fn kinds() -> Kinds {
    [Kind::Format, Kind::Invariant, Kind::Terminal].into_iter().collect()
}

/// The verifier of the null problem.
pub fn verifier() -> RulesVerifier {
    RulesVerifier::new(kinds())
}

/// The coordinator of the null problem.
pub fn coordinator() -> ThresholdCoordinator {
    ThresholdCoordinator(Thresholds {
        soft: Score::from_tenths(3),
        hard: Score::from_tenths(3),
        retries_max: 2,
    })
}

/// The given agents, with the load's faults injected.
pub fn agents(
    names: Names,
    faults: &Faults,
    executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
    verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
    coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
) -> std::io::Result<AgentSet> {
    // The timer has a thread of its own, which a load without faults should not pay for.
    let timer = if Role::ALL.into_iter().any(|role| faults.affect(role)) {
        Some(PreciseTimer::start()?)
    } else {
        None
    };

    let fault = |role: Role| {
        let timer = timer.clone().filter(|_| faults.affect(role));
        let (delay, failures) = (faults.delay, faults.failures);
        move || timer.clone().map(|timer| Fault::new(role, delay, failures, timer))
    };

    let [executor_fault, verifier_fault, coordinator_fault] = Role::ALL.map(fault);

    Ok(AgentSet::of(
        names,
        move || match executor_fault() {
            Some(fault) => Arc::new(Faulty(fault, executor())),
            None => executor(),
        },
        move || match verifier_fault() {
            Some(fault) => Arc::new(Faulty(fault, verifier())),
            None => verifier(),
        },
        move || match coordinator_fault() {
            Some(fault) => Arc::new(Faulty(fault, coordinator())),
            None => coordinator(),
        },
    ))
}

/// The agents' names in a report.
pub fn names(executor: &str, verifier: &str, coordinator: &str) -> Names {
    Names {
        executor: executor.to_owned(),
        verifier: verifier.to_owned(),
        coordinator: coordinator.to_owned(),
        locator: None,
    }
}
