//! What the runs of an owner may cost on a day, UTC. The day of a run is that of its acceptance, as
//! in overviews, and it counts when it is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::Execution;
use crate::runs::error::{DAY_MS, RunError};
use prime_journal::SearchQuery;
use prime_protocol::Cost;

/// What turns that were tried have cost, which belong to no run. Kept since the process began.
#[derive(Default)]
pub struct Tries {
    /// The day and the billionths of each owner.
    spent: Mutex<HashMap<String, (u64, u64)>>,
    /// Held by each owner's turn that is under way, if what it may cost is limited.
    under_way: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// The place of a turn of an owner whose costs are limited: until it is dropped, no other turn of
/// the owner begins.
pub struct PaidTurn {
    _place: OwnedMutexGuard<()>,
}

impl Tries {
    /// Waits until no other turn of the owner is under way.
    async fn turn_of(&self, owner: &str) -> PaidTurn {
        let place = {
            let mut all = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(owner.to_owned()).or_default())
        };
        PaidTurn { _place: place.lock_owned().await }
    }

    /// Adds the cost of a turn of an owner.
    fn add(&self, owner: &str, day: u64, cost: Cost) {
        let mut all = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the present day is of interest.
        all.retain(|_, (of, _)| *of == day);
        let (_, nanos) = all.entry(owner.to_owned()).or_insert((day, 0));
        *nanos = nanos.saturating_add(cost.nanos());
    }

    /// What the owner's turns of this day have cost, in billionths.
    fn nanos_of(&self, owner: &str, day: u64) -> u64 {
        let all = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(owner).filter(|(of, _)| *of == day).map_or(0, |(_, nanos)| *nanos)
    }
}

impl Execution {
    /// Counts what a turn has cost that belongs to no run.
    pub fn count_try(&self, owner: &str, cost: Cost) {
        self.tries.add(owner, self.store.now_ms() / DAY_MS, cost);
    }

    /// Begins a turn of the owner that belongs to no run. What it costs is known only when it ends:
    /// where costs are limited, the turns of an owner are taken one after another, and this waits
    /// for those before. `None` if nothing is limited.
    ///
    /// # Errors
    /// Like [`Execution::check_day`].
    pub async fn begin_try(&self, owner: &str) -> Result<Option<PaidTurn>, RunError> {
        if self.app().settings().server.cost_per_day_max_of(owner).is_none() {
            return Ok(None);
        }
        let turn = self.tries.turn_of(owner).await;
        self.check_day(owner).await?;
        Ok(Some(turn))
    }

    /// Checks that the owner's runs and tries of today have not cost as much as they may. Those that
    /// have just ended, or are open, are not counted: their own budgets limit them.
    ///
    /// # Errors
    /// `DayPaid`, or the journal cannot be read.
    pub async fn check_day(&self, owner: &str) -> Result<(), RunError> {
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
        let of_runs = totals.total.sums.cost_nanos.unwrap_or_default();
        let of_tries = self.tries.nanos_of(owner, now_ms / DAY_MS);
        let spent = Cost::from_nanos(of_runs.saturating_add(of_tries));
        if spent < limit {
            return Ok(());
        }
        let resets_ms = begin_ms + DAY_MS;
        let within = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let (next_day, wait_ms) = (within(resets_ms / DAY_MS), within(resets_ms - now_ms));
        Err(RunError::DayPaid { spent, limit, next_day, wait_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_turns_of_an_owner_come_one_after_another() {
        let tries = Tries::default();
        let first = tries.turn_of("ada").await;
        let mut second = std::pin::pin!(tries.turn_of("ada"));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(tries.turn_of("bob").await);

        tries.add("ada", 5, Cost::from_nanos(3));
        drop(first);
        assert!(futures::poll!(second.as_mut()).is_ready());
    }

    #[test]
    fn tries_add_up_by_owner_and_day() {
        let tries = Tries::default();
        tries.add("ada", 5, Cost::from_nanos(3));
        tries.add("ada", 5, Cost::from_nanos(4));
        tries.add("bob", 5, Cost::from_nanos(1));
        assert_eq!((tries.nanos_of("ada", 5), tries.nanos_of("bob", 5)), (7, 1));
        assert_eq!((tries.nanos_of("ada", 6), tries.nanos_of("eve", 5)), (0, 0));
        tries.add("bob", 6, Cost::from_nanos(2));
        assert_eq!((tries.nanos_of("ada", 5), tries.nanos_of("bob", 6)), (0, 2));
    }
}
