//! Starts the runs of schedules at their times, each once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{join_all, pending};
use tokio::sync::watch;

use super::due::{Due, done_by, due};
use super::plan::{Plan, Schedules};
use crate::requests::{Reason, RequestError, ResolvedRun, resolve};
use crate::runs::error::RunError;
use crate::runs::execution::new_run::{Accepted, NewRun};
use crate::runs::record::timestamp;
use crate::runs::service::Runs;
use prime_journal::IdempotencyKey;
use prime_settings::Schedule;

/// The longest pause between two looks at the clock, which may jump.
const LOOK_MS: u64 = 1_000;
/// Pause before a run that was not accepted is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// The schedules of a daemon, which a reload replaces.
#[derive(Default)]
pub struct Keeper {
    plans: watch::Sender<Arc<Schedules>>,
    /// Why the last run of a schedule was not accepted by this process.
    failures: Mutex<BTreeMap<String, String>>,
    /// The schedules as this process has kept them last; `None` for those that were removed since.
    kept: Mutex<BTreeMap<String, Option<Schedule>>>,
}

impl Keeper {
    pub(super) fn plans(&self) -> Arc<Schedules> {
        Arc::clone(&self.plans.borrow())
    }

    pub(super) fn failures(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Option<Schedule>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the schedules. One that is missing, and comes back later, is a new one.
    fn replace(&self, schedules: Schedules) {
        for (name, kept) in self.kept().iter_mut() {
            if schedules.get(name).is_none() {
                *kept = None;
            }
        }
        self.plans.send_replace(Arc::new(schedules));
    }

    /// Notes that a schedule is kept from now on. True if it is another than before.
    fn note(&self, plan: &Plan) -> bool {
        let before = self.kept().insert(plan.name.clone(), Some(plan.schedule.clone()));
        before.is_some_and(|before| before.as_ref() != Some(&plan.schedule))
    }
}

/// True if a run may be accepted later although it is refused now.
fn is_passing(error: &RequestError) -> bool {
    match error {
        RequestError::Field { reason, .. } => matches!(**reason, Reason::Program(_)),
        RequestError::Run(error) => match error {
            RunError::Full { .. }
            | RunError::OwnerFull { .. }
            | RunError::OwnerWaits { .. }
            | RunError::RateReached { .. }
            | RunError::DayPaid { .. }
            | RunError::Draining
            | RunError::NotWritable(_)
            | RunError::EngineLost(_) => true,
            RunError::Journal(error) => error.is_passing(),
            _ => false,
        },
        _ => false,
    }
}

impl Runs {
    /// Starts runs at the times of these schedules from now on.
    pub fn use_schedules(&self, schedules: Schedules) {
        for note in schedules.notes() {
            tracing::warn!("{note}");
        }
        self.keeper().replace(schedules);
    }

    /// Keeps the schedules until the daemon drains.
    pub async fn run_schedules(self: Arc<Self>) {
        let mut drained = self.drained();
        let mut plans = self.keeper().plans.subscribe();
        loop {
            let schedules = Arc::clone(&plans.borrow_and_update());
            // Apart from each other: the program of a task may not answer.
            let all = join_all(schedules.0.values().map(|plan| self.keep(Arc::clone(plan))));
            tokio::select! {
                _ = drained.wait_for(|drained| *drained) => return,
                changed = plans.changed() => if changed.is_err() {
                    return;
                },
                never = async { drop(all.await); pending::<()>().await } => never,
            }
        }
    }

    async fn keep(&self, plan: Arc<Plan>) {
        let clock = self.store().clock();
        let name = plan.name.as_str();
        let mut done_ms = loop {
            match self.first_mark(&plan).await {
                Ok(done_ms) => break done_ms,
                Err(error) => {
                    tracing::warn!(schedule = name, %error, "a schedule waits for the journal");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };

        let mut refused_ms = None;
        loop {
            let now_ms = clock();
            done_ms = done_by(done_ms, now_ms);

            match due(&plan.cron, plan.schedule.missed, done_ms, now_ms, refused_ms) {
                Due::Wait(next_ms) => {
                    // Not until the clock shows a time, which lies far ahead once it is set back.
                    let left_ms = next_ms.unwrap_or(u64::MAX).saturating_sub(now_ms);
                    tokio::time::sleep(Duration::from_millis(left_ms.min(LOOK_MS))).await;
                    continue;
                }
                Due::Skip(time_ms) => {
                    let time = timestamp(time_ms);
                    tracing::warn!(schedule = name, time, "a schedule skips what it has missed");
                    done_ms = time_ms;
                }
                Due::Start(time_ms) => {
                    match self.start_planned(&plan, Some(plan.key_of(time_ms))).await {
                        Err(error) if is_passing(&error) => {
                            self.note_refusal(name, time_ms, &error, refused_ms);
                            refused_ms = Some(time_ms);
                            tokio::time::sleep(AGAIN).await;
                            continue;
                        }
                        started => {
                            self.note_start(name, time_ms, started);
                            done_ms = time_ms;
                        }
                    }
                }
            }

            refused_ms = None;
            // If this is lost, the next process finds the run by its key.
            if let Err(error) = self.mark(name, done_ms).await {
                tracing::warn!(schedule = name, %error, "a schedule could not be marked");
            }
        }
    }

    fn note_refusal(&self, name: &str, time_ms: u64, error: &RequestError, before_ms: Option<u64>) {
        // Once for all attempts.
        if before_ms != Some(time_ms) {
            let time = timestamp(time_ms);
            tracing::warn!(schedule = name, time, %error, "a run of a schedule is tried again");
        }
        self.keeper().failures().insert(name.to_owned(), error.to_string());
    }

    fn note_start(&self, name: &str, time_ms: u64, started: Result<Accepted, RequestError>) {
        let time = timestamp(time_ms);
        match started {
            Ok(Accepted { record, is_new: true }) => {
                tracing::info!(schedule = name, time, run = %record.id, "a schedule started a run");
            }
            // Another node was first, or an earlier process.
            Ok(Accepted { .. }) | Err(RequestError::Run(RunError::KeySpent(_))) => {}
            Err(error) => {
                tracing::error!(schedule = name, time, %error, "a schedule cannot start its run");
                self.keeper().failures().insert(name.to_owned(), error.to_string());
                return;
            }
        }
        self.keeper().failures().remove(name);
    }

    /// Up to when a schedule is done that is kept from now on: for a new or another one, now.
    async fn first_mark(&self, plan: &Plan) -> Result<u64, RunError> {
        let name = plan.name.clone();
        let is_other = self.keeper().note(plan);
        let mark = self.store().read(move |journal| journal.schedule_marks().mark(&name)).await?;
        if let Some(mark) = mark.filter(|_| !is_other) {
            return Ok(mark);
        }
        let now_ms = self.store().now_ms();
        self.mark(&plan.name, now_ms).await?;
        Ok(now_ms)
    }

    async fn mark(&self, name: &str, done_ms: u64) -> Result<(), RunError> {
        let name = name.to_owned();
        self.store().read(move |journal| journal.schedule_marks().set_mark(&name, done_ms)).await
    }

    /// Accepts a run of a schedule.
    ///
    /// # Errors
    /// As for any request.
    pub(super) async fn start_planned(
        &self,
        plan: &Arc<Plan>,
        key: Option<IdempotencyKey>,
    ) -> Result<Accepted, RequestError> {
        let owner = plan.owner().to_owned();
        if let Some(key) = &key
            && let Some(earlier) = self.repeated(&owner, key).await?
        {
            return Ok(earlier);
        }

        let (app, plan) = (self.app(), Arc::clone(plan));
        let tasks = app.tasks().of_owner(&owner);
        let system = actix::System::current();
        // The program of a task may take its time.
        let resolved = tokio::task::spawn_blocking(move || {
            // Agents are actors.
            actix::System::set_current(system);
            resolve(&app, &tasks, &plan.request, None)
        });
        let resolved = resolved.await.map_err(|_| RunError::Draining)?;
        let ResolvedRun { spec, problem } = resolved?;
        Ok(self.accept(NewRun { owner, key, spec, problem }).await?)
    }
}
