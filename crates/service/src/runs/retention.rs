//! Retention: removes finished runs by age and by size, in rounds, with other writes in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::error::RunError;
use super::service::Runs;
use super::trusted_clock::TrustedClock;
use prime_journal::{DamagedRow, Removed, Retention};

/// Time between two rounds of removal.
const PERIOD: Duration = Duration::from_mins(1);
const DAY_MS: u64 = 86_400_000;
/// Maximum number of entries in a warning about damage.
const NAMED_MAX: usize = 10;

/// Which finished runs to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Only runs of this owner, if set.
    pub owner: Option<String>,
    /// Removes runs whose last change is more than this many days ago, if set.
    pub older_than_days: Option<u32>,
    /// Then removes the oldest while the journal, or the owner's finished runs, exceed this many
    /// bytes, if set.
    pub bytes_max: Option<u64>,
}

/// Logs the rows that cannot be removed.
fn warn_of_damage(damaged: &[DamagedRow]) {
    for DamagedRow { id, reason } in damaged.iter().take(NAMED_MAX) {
        tracing::warn!(run = id, reason, "cannot remove what is damaged");
    }
    if !damaged.is_empty() {
        tracing::warn!(
            count = damaged.len(),
            "damage keeps a part of the journal from being removed: stop the daemon, and see with \
             `prime-agents journal check` what can be read"
        );
    }
}

impl Runs {
    /// Removes finished runs. Their idempotency keys stay taken for `journal.idempotency_days`.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn collect(&self, cleanup: Cleanup) -> Result<Removed, RunError> {
        let now = self.trusted_now_ms().await?;
        let Cleanup { owner, older_than_days, bytes_max } = cleanup;
        let retention = Arc::new(Retention {
            owner,
            updated_before_ms: older_than_days.map(|days| match days {
                // 0 days means all of them, whatever the time is.
                0 => now.max(self.store().now_ms()),
                days => now.saturating_sub(u64::from(days) * DAY_MS),
            }),
            bytes_max,
            now_ms: now,
            keep_keys_ms: u64::from(self.app().settings().journal.idempotency_days) * DAY_MS,
        });

        let mut all = Removed::default();
        loop {
            let of_round = Arc::clone(&retention);
            let round = self.store().read(move |journal| journal.collect(&of_round)).await?;

            all.runs += round.runs;
            all.events += round.events;
            all.bytes += round.bytes;
            // The last round has seen all rows that stay.
            all.damaged = round.damaged;
            if !round.has_more || self.is_draining() {
                warn_of_damage(&all.damaged);
                return Ok(all);
            }
        }
    }

    /// The time by which runs are removed, without jumps of the system's clock that may be wrong.
    async fn trusted_now_ms(&self) -> Result<u64, RunError> {
        let hours = self.app().settings().journal.clock_trust_hours;
        let trust = Duration::from_hours(u64::from(hours));

        let mut clock = self.retention_clock().lock().await;
        let wall_ms = self.store().now_ms();
        let clock = match &mut *clock {
            Some(clock) => clock,
            none => {
                let reached_ms = self.store().read(|journal| journal.reached_ms()).await?;
                none.insert(TrustedClock::start(reached_ms, wall_ms, Instant::now()))
            }
        };
        Ok(clock.read(wall_ms, Instant::now(), trust))
    }

    /// The configured retention, of all runs or of those of one owner.
    pub fn configured_cleanup(&self, owner: Option<String>) -> Cleanup {
        let app = self.app();
        let journal = &app.settings().journal;

        let bytes_max = match &owner {
            None => journal.retention_bytes,
            Some(owner) => {
                let own = app.settings().server.keys.iter().find(|key| key.name == *owner);
                own.and_then(|key| key.journal_bytes_max).unwrap_or(journal.key_bytes_max)
            }
        };

        Cleanup {
            owner,
            older_than_days: (journal.retention_days > 0).then_some(journal.retention_days),
            bytes_max: (bytes_max > 0).then_some(bytes_max),
        }
    }

    /// Removes the task modules that are no longer used.
    async fn collect_uploads(&self) {
        let collected = match self.trusted_now_ms().await {
            Ok(now_ms) => self.collect_versions(now_ms).await,
            Err(error) => Err(error),
        };
        match collected {
            Ok(0) => {}
            Ok(versions) => tracing::info!(versions, "removed uploaded modules that nobody uses"),
            Err(error) => tracing::warn!(%error, "cannot remove uploaded modules"),
        }
    }

    /// Applies the configured retention periodically, until the daemon drains.
    pub async fn run_retention(self: Arc<Self>) {
        // This comes before this process writes its own times to the journal.
        if let Err(error) = self.trusted_now_ms().await {
            tracing::warn!(%error, "cannot read what time the journal knows");
        }

        let mut drained = self.drained();
        while tokio::time::timeout(PERIOD, drained.wait_for(|drained| *drained)).await.is_err() {
            // A key that exceeds its own limit makes room before all runs are looked at.
            let app = self.app();

            let of_keys = app
                .settings()
                .server
                .keys
                .iter()
                .map(|key| self.configured_cleanup(Some(key.name.clone())));
            let of_keys = of_keys.filter(|cleanup| cleanup.bytes_max.is_some()).collect::<Vec<_>>();

            for cleanup in of_keys.into_iter().chain([self.configured_cleanup(None)]) {
                match self.collect(cleanup).await {
                    Ok(removed) if removed.runs > 0 => {
                        tracing::info!(
                            runs = removed.runs,
                            bytes = removed.bytes,
                            "removed finished runs"
                        );
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "cannot remove finished runs"),
                }
            }
            self.collect_uploads().await;
        }
    }
}
