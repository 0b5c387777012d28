//! The task that notes runs in the journal's search index: first those that an earlier process or
//! an earlier version left, then those that commits change.

use std::sync::Arc;
use std::time::Duration;

use super::entry::{Steps, entry_of};
use crate::runs::error::RunError;
use crate::runs::relabel::read_labels;
use crate::runs::service::Runs;
use prime_journal::{Journal, JournalError};

/// Maximum number of runs of a round.
const ROUND: u32 = 128;
/// Time for which changes are gathered; searches find them this much later.
const GATHERED: Duration = Duration::from_millis(200);
/// Pause between two rounds, in which others can write.
const BETWEEN: Duration = Duration::from_millis(20);
/// Pause after a failure.
const FAILED: Duration = Duration::from_secs(5);
/// Bytes of a run's events in one read, and in which its steps are looked for.
const READ_BYTES: usize = 256 << 10;
const EVENT_BYTES: usize = 16 << 20;

/// The steps in a run's events, up to where these are damaged.
fn steps_of(journal: &dyn Journal, id: &str) -> Result<Steps, JournalError> {
    let (mut steps, mut last, mut bytes) = (Steps::default(), 0, 0);
    while bytes < EVENT_BYTES {
        let segments = match journal.segments(id, last, READ_BYTES) {
            Err(JournalError::Damaged(_)) => break,
            segments => segments?,
        };
        let Some(newest) = segments.last() else { break };
        last = newest.last_seq();
        bytes += segments.iter().map(|segment| segment.body.len()).sum::<usize>();
        steps.see(&segments);
    }
    Ok(steps)
}

/// Notes these runs. Removed ones are skipped.
fn note(journal: &dyn Journal, ids: &[String]) -> Result<(), JournalError> {
    let mut entries = Vec::new();
    let mut relabelled = journal.labels().relabelled(ids)?;
    for id in ids {
        // A damaged run cannot be found by its text, but does not hide others.
        let row = match journal.run(id) {
            Err(JournalError::Damaged(reason)) => {
                tracing::warn!(run = id, reason, "a damaged run is not noted for searches");
                continue;
            }
            row => row?,
        };
        let Some(row) = row else { continue };
        let steps = if row.is_over { steps_of(journal, id)? } else { Steps::default() };
        // Labels that this version cannot read are shown as an error where the run is read.
        let labels = relabelled.remove(id).and_then(|text| read_labels(&text).ok());
        entries.push(entry_of(&row, &steps, labels));
    }
    if entries.is_empty() { Ok(()) } else { journal.search().note(&entries) }
}

impl Runs {
    async fn note_runs(&self, ids: Vec<String>) -> Result<(), RunError> {
        self.store().read(move |journal| note(journal, &ids)).await
    }

    /// Notes all runs that are not noted; false if it was asked to stop.
    async fn note_unnoted(&self) -> Result<bool, RunError> {
        let mut after = None;
        loop {
            let found =
                self.store().read(move |journal| journal.search().unnoted(after, ROUND)).await?;
            self.note_runs(found.ids).await?;
            if self.is_draining() {
                return Ok(false);
            }
            after = found.next;
            if after.is_none() {
                return Ok(true);
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// Notes what commits change, as long as there is something.
    async fn note_changed(&self) -> Result<(), RunError> {
        let changed = self.store().changed();
        loop {
            let round = changed.take(ROUND as usize);
            if round.is_beyond {
                self.note_unnoted().await?;
            }
            if round.ids.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.note_runs(round.ids.clone()).await {
                changed.add(round.ids);
                return Err(error);
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// Keeps the search index, until the daemon drains.
    pub async fn run_indexer(self: Arc<Self>) {
        let mut drained = self.drained();
        let index = async {
            while let Err(error) = self.note_unnoted().await {
                tracing::warn!(%error, "runs cannot be noted for searches");
                tokio::time::sleep(FAILED).await;
            }
            self.indexed().complete();

            loop {
                self.store().changed().changed().await;
                tokio::time::sleep(GATHERED).await;
                if let Err(error) = self.note_changed().await {
                    tracing::warn!(%error, "runs cannot be noted for searches");
                    tokio::time::sleep(FAILED).await;
                }
            }
        };
        tokio::select! {
            _ = drained.wait_for(|drained| *drained) => {}
            () = index => {}
        }
    }
}
