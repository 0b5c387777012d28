//! The schedules of a configuration, each with its times and its request, checked as far as that is
//! possible before a run of it is due.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::requests::{CheckedRequest, RunRequest};
use crate::runs::record::timestamp;
use prime_agent_set::task_program::{TaskPrograms, name_fault};
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
    /// What must be done before its first run, if anything.
    note: Option<String>,
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

    /// What must be done before the first runs of some: sentences with the schedule's name.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(|plan| plan.note.as_deref())
    }

    /// The schedule of this name.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Plan>> {
        self.0.get(name).cloned()
    }
}

/// What must be done before a run of a task that is neither built in nor configured: its upload.
///
/// # Errors
/// Why it cannot be uploaded for this schedule, as a clause after the message that the task is
/// unknown; empty if it is a built-in one misspelt.
fn unknown_task(task: &str, schedule: &Schedule, settings: &Settings) -> Result<String, String> {
    let built_in = tasks::all().chain(tasks::variants()).map(|task| task.spec().slug);
    if nearest(task, built_in).is_some() {
        return Err(String::new());
    }

    let own = nearest(task, settings.tasks.keys().map(String::as_str));
    let own = own.map(|own| format!(" (did you mean `tasks.{own}`?)")).unwrap_or_default();
    if let Some(fault) = name_fault(task) {
        return Err(format!("{own}; {fault}"));
    }
    if settings.uploads.key_tasks_max == 0 {
        return Err(format!("{own}; nobody may upload it either (uploads.key_tasks_max is 0)"));
    }
    match &schedule.key {
        Some(key) => Ok(format!(
            "the task `{task}` is neither built in nor configured{own}. The key `{key}` must have \
             uploaded it when a run is due"
        )),
        None if settings.server.keys.is_empty() => Ok(format!(
            "the task `{task}` is neither built in nor configured{own}. It must have been uploaded \
             when a run is due"
        )),
        // An upload belongs to the key that sent it.
        None => Err(format!(
            "{own}; if a client uploads it, set `schedules.*.key` to the name of its key"
        )),
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

        // Programs are asked only when a run is due: they may not have started yet.
        let found = request.task.as_deref().map(|task| (task, tasks::find(task)));
        let note = match &found {
            Some((task, Err(unknown))) if !settings.tasks.contains_key(*task) => {
                let reason = unknown_task(task, schedule, settings);
                Some(reason.map_err(|reason| format!("field `task`: {unknown}{reason}"))?)
            }
            _ => None,
        };
        if found.is_none_or(|(_, found)| found.is_ok()) {
            let checked = CheckedRequest::of(settings, &TaskPrograms::default(), &request);
            let checked = checked.map_err(|error| error.to_string())?;
            checked.check_learnt().map_err(|error| error.to_string())?;
        }
        let note = note.map(|note| format!("`schedules.{name}.request`: {note}"));
        Ok(Self { name: name.to_owned(), schedule: schedule.clone(), cron, request, note })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The notes of a schedule that asks for this task, or why it is refused.
    fn nightly(task: &str, sets: &[&str]) -> Result<Vec<String>, String> {
        let nightly =
            format!(r#"schedules.nightly={{cron="0 6 * * *", request='{{"task": "{task}"}}'}}"#);
        let sets: Vec<String> =
            std::iter::once(nightly).chain(sets.iter().map(|set| (*set).to_owned())).collect();
        let settings = Settings::load(&[], std::iter::empty(), &sets).expect("valid settings");
        let schedules = Schedules::of(&settings).map_err(|error| error.to_string())?;
        Ok(schedules.notes().map(str::to_owned).collect())
    }

    const OWN: &str = r#"tasks.invoices.command=["/bin/true"]"#;
    const KEYS: &str = concat!(
        r#"server.keys=[{name="ops", sha256=""#,
        "1111111111111111111111111111111111111111111111111111111111111111",
        r#""}]"#
    );

    #[test]
    fn a_task_that_nobody_can_upload_is_refused_with_the_nearest() {
        for (task, sets, parts) in [
            ("n-queen", &[][..], ["`n-queens`", "`schedules.nightly.request`"]),
            ("nosuch", &["uploads.key_tasks_max=0"], ["\"nosuch\"", "uploads.key_tasks_max is 0"]),
            ("No Such", &[], ["is not a name", "`schedules.nightly.request`"]),
            ("nosuch", &[KEYS], ["\"nosuch\"", "set `schedules.*.key`"]),
            ("invoice", &[OWN, KEYS], ["\"invoice\"", "did you mean `tasks.invoices`?"]),
        ] {
            let refusal = nightly(task, sets).unwrap_err();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{task}: {refusal}");
        }
    }

    #[test]
    fn a_task_that_may_be_uploaded_is_noted() {
        let noted = |sets: &[&str], task: &str| nightly(task, sets).unwrap().join("\n");
        let note = noted(&[], "nosuch");
        assert!(note.contains("schedules.nightly") && note.contains("must have been"), "{note}");
        let note = noted(&[KEYS, "schedules.nightly.key=ops", OWN], "invoice");
        assert!(note.contains("The key `ops`") && note.contains("`tasks.invoices`"), "{note}");

        assert_eq!(noted(&[OWN], "invoices"), "");
        assert_eq!(noted(&[], "n-queens"), "");
    }
}
