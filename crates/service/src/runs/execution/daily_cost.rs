//! What the runs of an owner may cost on a day, UTC. The day of a run is that of its acceptance, as
//! in overviews, and it counts when it is over.

use super::Execution;
use crate::runs::error::{DAY_MS, RunError};
use prime_journal::SearchQuery;
use prime_protocol::Cost;

impl Execution {
    /// Checks that the owner's runs of today have not cost as much as they may. Those that have
    /// just ended, or are open, are not counted: their own budgets limit them.
    ///
    /// # Errors
    /// `DayPaid`, or the journal cannot be read.
    pub(super) async fn check_day(&self, owner: &str) -> Result<(), RunError> {
        // Most daemons have no such limit: for them nothing is added up.
        let Some(limit) = self.app().settings().server.cost_per_day_max_of(owner) else {
            return Ok(());
        };
        let now_ms = self.store.now_ms();
        let begin_ms = now_ms - now_ms % DAY_MS;
        let query = SearchQuery {
            owner: Some(owner.to_owned()),
            since_ms: Some(begin_ms),
            ..SearchQuery::default()
        };

        let totals = self.store.read(move |journal| journal.search().totals(&query)).await?;
        let spent = Cost::from_nanos(totals.total.sums.cost_nanos.unwrap_or_default());
        if spent < limit {
            return Ok(());
        }
        let resets_ms = begin_ms + DAY_MS;
        let within = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let (next_day, wait_ms) = (within(resets_ms / DAY_MS), within(resets_ms - now_ms));
        Err(RunError::DayPaid { spent, limit, next_day, wait_ms })
    }
}
