//! Retention: removes finished runs by age and by size, in rounds, so that writes go on in between.

use std::sync::Arc;
use std::time::Duration;

use super::service::{RunError, Runs};
use prime_journal::{Removed, Retention};

/// Time between two rounds of removal.
const PERIOD: Duration = Duration::from_mins(1);
const DAY_MS: u64 = 86_400_000;

impl Runs {
    /// Removes finished runs last changed more than `older_than_days` ago, then the oldest while the journal exceeds
    /// `bytes_max`.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn collect(
        self: &Arc<Self>,
        older_than_days: Option<u32>,
        bytes_max: Option<u64>,
    ) -> Result<Removed, RunError> {
        let now = (self.clock)();
        let updated_before_ms = older_than_days.map(|days| now.saturating_sub(u64::from(days) * DAY_MS));
        let retention = Retention { updated_before_ms, bytes_max };
        let mut all = Removed::default();
        loop {
            let round = self.read(move |journal| journal.collect(retention)).await?;
            all.runs += round.runs;
            all.events += round.events;
            all.bytes += round.bytes;
            if !round.has_more || self.is_draining() {
                return Ok(all);
            }
        }
    }

    /// Applies the configured retention periodically, until the daemon drains.
    pub async fn run_retention(self: Arc<Self>) {
        let mut drained = self.drained();
        while tokio::time::timeout(PERIOD, drained.wait_for(|drained| *drained)).await.is_err() {
            let app = self.app();
            let journal = &app.settings().journal;
            let days = (journal.retention_days > 0).then_some(journal.retention_days);
            let bytes = (journal.retention_bytes > 0).then_some(journal.retention_bytes);
            match self.collect(days, bytes).await {
                Ok(removed) if removed.runs > 0 => {
                    tracing::info!(runs = removed.runs, bytes = removed.bytes, "removed finished runs");
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "cannot remove finished runs"),
            }
        }
    }
}
