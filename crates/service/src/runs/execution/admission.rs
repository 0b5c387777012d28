//! What the queue asks of a new run: times that are not past, a priority that its key may have, and
//! rates of acceptance.

use super::Execution;
use crate::runs::error::RunError;
use crate::runs::queue::rates::Reached;
use crate::runs::record::timestamp;
use crate::runs::spec::RunSpec;
use prime_journal::Journal;

impl Execution {
    /// Checks when a run is to begin and to end. One without a priority gets the largest that its
    /// key may have, if that is below 0.
    ///
    /// # Errors
    /// `Late` or `PriorityTooHigh`.
    pub(super) fn queued(&self, owner: &str, mut spec: RunSpec) -> Result<RunSpec, RunError> {
        let now_ms = self.store.now_ms();
        if let Some(deadline_ms) = spec.queueing.deadline_ms
            && deadline_ms <= now_ms
        {
            let (deadline, now) = (timestamp(deadline_ms), timestamp(now_ms));
            return Err(RunError::Late { deadline, now });
        }

        let (given, limit) = (spec.queueing.priority, self.app().settings().priority_max_of(owner));
        if given > limit && given != 0 {
            return Err(RunError::PriorityTooHigh { given, limit });
        }
        spec.queueing.priority = given.min(limit);
        Ok(spec)
    }

    /// Checks that not too many runs of the owner wait for approval already, if this one may.
    ///
    /// # Errors
    /// `OwnerWaits`, or the journal cannot be read.
    pub(super) async fn check_waiting(&self, owner: &str, spec: &RunSpec) -> Result<(), RunError> {
        let limit = self.app().settings().server.key_waiting_runs_max;
        if spec.approval.is_none() || limit == 0 {
            return Ok(());
        }
        let name = owner.to_owned();
        let count = move |journal: &dyn Journal| journal.approvals().parked_runs(&name, limit);
        let waiting = self.store.read(count).await?;
        if waiting < limit { Ok(()) } else { Err(RunError::OwnerWaits { waiting, limit }) }
    }

    /// Counts a run that is about to be accepted.
    ///
    /// # Errors
    /// `RateReached`; then it is not counted.
    pub(super) fn count_rates(&self, owner: &str, task: &str) -> Result<(), RunError> {
        let app = self.app();
        let settings = app.settings();
        let limits: Vec<_> = [
            settings
                .runs_per_minute_of(owner)
                .map(|(most, key)| (most, key, format!("key {owner}"))),
            settings
                .runs_per_minute_of_task(task)
                .map(|(most, key)| (most, key, format!("task {task}"))),
        ]
        .into_iter()
        .flatten()
        .collect();

        self.rates.count(&limits).map_err(|Reached { most, key, wait }| RunError::RateReached {
            most,
            key,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1),
        })
    }
}
