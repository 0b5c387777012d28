//! The coordinator that decides on new verdicts: the run's own, if that is a rule of this program.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Rejudge;
use crate::runs::spec::RunSpec;
use prime_agent_set::{
    AgentSet, Agents as _, Coordinator, RecordedAgent, RecordedAgents, ThresholdCoordinator,
};
use prime_protocol::{Score, Thresholds};
use prime_settings::{CoordinatorImplementation, Implementation as _};

/// The role of an agent without options.
fn plain(name: &str) -> prime_agent_set::RecordedRole {
    let agent = RecordedAgent { implementation: name.to_owned(), options: serde_json::Map::new() };
    prime_agent_set::RecordedRole {
        name: name.to_owned(),
        agents: BTreeMap::from([(name.to_owned(), agent)]),
    }
}

/// The run's coordinator with its name. A model or a program is not asked again: the thresholds of
/// the run decide instead.
pub(super) fn of(
    spec: &RunSpec,
    with: &Rejudge<'_>,
) -> Result<(String, Arc<dyn Coordinator>), String> {
    let of_rules = |recorded: &&Arc<RecordedAgents>| {
        let agent = recorded.coordinator.agents.get(&recorded.coordinator.name);
        let implementation =
            agent.and_then(|agent| CoordinatorImplementation::find(&agent.implementation));
        matches!(
            implementation,
            Some(CoordinatorImplementation::Threshold | CoordinatorImplementation::Adaptive)
        )
    };

    if let Some(recorded) = spec.recorded.as_ref().filter(of_rules) {
        let only = RecordedAgents {
            executor: plain("reference"),
            verifier: plain("none"),
            templates: BTreeMap::new(),
            engines: BTreeMap::new(),
            pools: BTreeMap::new(),
            recordings: BTreeMap::new(),
            ..RecordedAgents::clone(recorded)
        };
        let settings = only
            .restore(with.settings, &with.resources.environment)
            .map_err(|error| error.to_string())?;
        let agents = AgentSet::from_settings(&settings, with.resources)
            .map_err(|error| error.to_string())?;
        return Ok((recorded.coordinator.name.clone(), agents.coordinator()));
    }

    let limits = spec.recorded.as_ref().map(|recorded| recorded.thresholds);
    let run = &with.settings.run;
    let (soft, hard, retries_max) = limits
        .map_or((run.tau_soft, run.tau_hard, run.retries_max), |limits| {
            (limits.tau_soft, limits.tau_hard, limits.retries_max)
        });
    let score = |value| Score::from_value(value).ok_or("its thresholds are not scores");
    let thresholds = Thresholds { soft: score(soft)?, hard: score(hard)?, retries_max };
    Ok(("threshold".to_owned(), Arc::new(ThresholdCoordinator(thresholds))))
}
