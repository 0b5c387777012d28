//! Agents that do nothing, and their problem: what is left is coordination.

use std::sync::Arc;

use super::alarm::Alarm;
use super::flaw::{Flaw, Flawed};
use super::plan::Flaws;
use crate::agents::{AgentSet, Coordinator, Executor, Names, RulesVerifier, ThresholdCoordinator, Verifier};
use prime_bench::tasks::{Kind, Kinds};
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
    ThresholdCoordinator(Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 })
}

/// These agents, with flaws where the load wants them.
///
/// # Errors
/// When the thread that flawed agents need cannot be started.
pub fn agents(
    names: Names,
    flaws: &Flaws,
    executor: impl Fn() -> Arc<dyn Executor> + Send + Sync + 'static,
    verifier: impl Fn() -> Arc<dyn Verifier> + Send + Sync + 'static,
    coordinator: impl Fn() -> Arc<dyn Coordinator> + Send + Sync + 'static,
) -> std::io::Result<AgentSet> {
    let alarm = if Role::ALL.into_iter().any(|role| flaws.concern(role)) { Some(Alarm::start()?) } else { None };
    let flaw = |role: Role| {
        let alarm = alarm.clone().filter(|_| flaws.concern(role));
        let (delay, failures) = (flaws.delay, flaws.failures);
        move || alarm.clone().map(|alarm| Flaw::new(role, delay, failures, alarm))
    };
    let [of_executor, of_verifier, of_coordinator] = Role::ALL.map(flaw);
    Ok(AgentSet::of(
        names,
        kinds(),
        move || match of_executor() {
            Some(flaw) => Arc::new(Flawed(flaw, executor())),
            None => executor(),
        },
        move || match of_verifier() {
            Some(flaw) => Arc::new(Flawed(flaw, verifier())),
            None => verifier(),
        },
        move || match of_coordinator() {
            Some(flaw) => Arc::new(Flawed(flaw, coordinator())),
            None => coordinator(),
        },
    ))
}

/// What the agents are called in a report.
pub fn names(executor: &str, verifier: &str, coordinator: &str) -> Names {
    Names { executor: executor.to_owned(), verifier: verifier.to_owned(), coordinator: coordinator.to_owned() }
}
