//! What finished runs may take: removed by age and by bytes, in rounds, so that writing goes on between them.

use std::sync::Arc;
use std::time::Duration;

use super::service::{RunError, Runs};
use prime_journal::{Removed, Retention};

/// Time between two looks at what may be removed.
const PERIOD: Duration = Duration::from_mins(1);
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

impl Runs {
    /// Removes finished runs that were last changed more than `older_than_days` ago, and the oldest while the journal
    /// has more than `bytes_max`.
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

    /// Removes what the configuration says may go, now and then, until the daemon drains.
    pub async fn keep_tidy(self: Arc<Self>) {
        let mut drained = self.drained();
        while tokio::time::timeout(PERIOD, drained.wait_for(|drained| *drained)).await.is_err() {
            let app = self.app();
            let journal = &app.settings().journal;
            let days = (journal.retention_days > 0).then_some(journal.retention_days);
            let bytes = (journal.retention_bytes > 0).then_some(journal.retention_bytes);
            match self.collect(days, bytes).await {
                Ok(removed) if removed.runs > 0 => {
                    tracing::info!(runs = removed.runs, bytes = removed.bytes, "finished runs were removed");
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "finished runs cannot be removed"),
            }
        }
    }
}
