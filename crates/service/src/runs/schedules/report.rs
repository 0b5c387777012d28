//! What schedules have done and will do, as their users see it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::Plan;
use crate::requests::RequestError;
use crate::runs::error::RunError;
use crate::runs::execution::new_run::Accepted;
use crate::runs::record::timestamp;
use crate::runs::service::Runs;
use prime_settings::Missed;

/// How many times to come a report names.
const NEXT: usize = 5;

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleReport {
    /// Its name.
    pub name: String,
    /// Its times, as a line of crontab.
    pub cron: String,
    /// The time zone of `cron`.
    pub timezone: String,
    /// What becomes of times at which no daemon ran: `skip` or `once`.
    pub missed: String,
    /// The name of the API key to which its runs belong; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The slug of its runs' task, or `problem`.
    pub task: String,
    /// The next times of its runs: RFC 3339, UTC.
    pub next: Vec<String>,
    /// The time up to which it is done: RFC 3339, UTC; left out if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub done_until: Option<String>,
    /// The run of that time; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// Why this daemon could not start the last run; left out if it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Runs {
    /// The schedules whose runs belong to this owner; `None` = all.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn schedules(&self, owner: Option<&str>) -> Result<Vec<ScheduleReport>, RunError> {
        let plans = self.keeper().plans();
        let mut reports = Vec::new();
        for plan in plans.0.values() {
            if owner.is_none_or(|owner| owner == plan.owner()) {
                reports.push(self.report(Arc::clone(plan)).await?);
            }
        }
        Ok(reports)
    }

    async fn report(&self, plan: Arc<Plan>) -> Result<ScheduleReport, RunError> {
        let of = Arc::clone(&plan);
        let read = self.store().read(move |journal| {
            let Some(done_ms) = journal.schedule_marks().mark(&of.name)? else {
                return Ok((None, None));
            };
            let run = journal.run_of_key(of.owner(), &of.key_of(done_ms).key)?;
            Ok((Some(done_ms), run.map(|(run, _)| run)))
        });
        let (done_ms, last_run) = read.await?;

        let now_ms = i64::try_from(self.store().now_ms()).unwrap_or(i64::MAX);
        let times =
            std::iter::successors(plan.cron.next_after(now_ms), |time| plan.cron.next_after(*time));
        let next = times.take(NEXT).filter_map(|time| u64::try_from(time).ok()).map(timestamp);
        Ok(ScheduleReport {
            name: plan.name.clone(),
            cron: plan.schedule.cron.clone(),
            timezone: plan.schedule.timezone.0.clone(),
            missed: match plan.schedule.missed {
                Missed::Skip => "skip".to_owned(),
                Missed::Once => "once".to_owned(),
            },
            key: plan.schedule.key.clone(),
            task: plan.request.task.clone().unwrap_or_else(|| "problem".to_owned()),
            next: next.collect(),
            done_until: done_ms.map(timestamp),
            last_run,
            failure: self.keeper().failures().get(&plan.name).cloned(),
        })
    }

    /// The owner of a schedule's runs; `None` if there is no such schedule.
    pub fn owner_of_schedule(&self, name: &str) -> Option<String> {
        self.keeper().plans().get(name).map(|plan| plan.owner().to_owned())
    }

    /// Starts a run of a schedule now, in addition to those of its times; `None` if there is no
    /// such schedule.
    ///
    /// # Errors
    /// As for any request.
    pub async fn run_schedule(&self, name: &str) -> Option<Result<Accepted, RequestError>> {
        let plan = self.keeper().plans().get(name)?;
        Some(self.start_planned(&plan, None).await)
    }
}
