//! The schedules of a configuration, each with its times and its request, checked as far as that is
//! possible before a run of it is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::requests::{CheckedRequest, RunRequest};
use crate::runs::record::timestamp;
use prime_agent_set::task_program::TaskPrograms;
use prime_bench::spelling::nearest;
use prime_bench::tasks;
use prime_journal::IdempotencyKey;
use prime_settings::{Cron, Schedule, Settings};

/// The label of the runs of a schedule, unless its request has another of this name.
const LABEL: &str = "schedule";
/// What the idempotency keys of schedules begin with. No client can send such a key: headers are
/// ASCII.
const KEY_PREFIX: &str = "§schedule:";

/// A schedule whose request cannot become a run.
#[derive(Debug, thiserror::Error)]
#[error("`schedules.{name}.request`: {reason}")]
pub struct ScheduleError {
    name: String,
    reason: String,
}

/// One schedule.
#[derive(Debug)]
pub struct Plan {
    pub name: String,
    pub schedule: Schedule,
    pub cron: Cron,
    pub request: RunRequest,
}

/// The schedules of a configuration, by name.
#[derive(Clone, Debug, Default)]
pub struct Schedules(pub(super) BTreeMap<String, Arc<Plan>>);

impl Schedules {
    /// The schedules of these settings.
    ///
    /// # Errors
    /// The first one whose request cannot become a run.
    pub fn of(settings: &Settings) -> Result<Self, ScheduleError> {
        let plans = settings.schedules.iter().map(|(name, schedule)| {
            let wrong = |reason: String| ScheduleError { name: name.clone(), reason };
            let plan = Plan::new(name, schedule, settings).map_err(wrong)?;
            Ok((name.clone(), Arc::new(plan)))
        });
        plans.collect::<Result<_, _>>().map(Self)
    }

    /// The schedule of this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Plan>> {
        self.0.get(name).cloned()
    }
}

impl Plan {
    fn new(name: &str, schedule: &Schedule, settings: &Settings) -> Result<Self, String> {
        let cron = schedule.times().map_err(|(_, reason)| reason)?;
        let request: Result<RunRequest, _> = serde_json::from_str(&schedule.request);
        let mut request = request.map_err(|error| error.to_string())?;
        if let Some(field) = (request.not_before.as_ref().map(|_| "not_before"))
            .or(request.deadline.as_ref().map(|_| "deadline"))
        {
            return Err(format!(
                "field `{field}` is one moment, and the schedule has many: leave it out"
            ));
        }
        request.labels.entry(LABEL.to_owned()).or_insert_with(|| name.to_owned());

        let owner = schedule.key.clone().unwrap_or_default();
        let (given, most) =
            (request.priority.unwrap_or_default(), settings.priority_max_of(&owner));
        if given > most && given != 0 {
            return Err(format!("field `priority`: is {given}, and its key may have up to {most}"));
        }

        // Programs are asked only when a run is due: they may not have started yet. An unknown task
        // may be uploaded, unless its name is a built-in one misspelt.
        let found = request.task.as_deref().map(|task| (task, tasks::find(task)));
        if let Some((task, Err(unknown))) = &found
            && !settings.tasks.contains_key(*task)
            && nearest(task, tasks::all().map(|task| task.spec().slug)).is_some()
        {
            return Err(format!("field `task`: {unknown}"));
        }
        if found.is_none_or(|(_, found)| found.is_ok()) {
            let checked = CheckedRequest::of(settings, &TaskPrograms::default(), &request);
            let checked = checked.map_err(|error| error.to_string())?;
            checked.check_learnt().map_err(|error| error.to_string())?;
        }
        Ok(Self { name: name.to_owned(), schedule: schedule.clone(), cron, request })
    }

    /// The owner of its runs.
    pub fn owner(&self) -> &str {
        self.schedule.key.as_deref().unwrap_or_default()
    }

    /// What tells the run of a time from all others, on every node.
    pub fn key_of(&self, time_ms: u64) -> IdempotencyKey {
        let key = format!("{KEY_PREFIX}{}:{}", self.name, timestamp(time_ms));
        // Only the key counts: a request that changes between two attempts is still one run.
        let fingerprint = Sha256::digest(&key).into();
        IdempotencyKey { key, fingerprint }
    }
}
