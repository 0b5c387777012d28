//! Waits for progress of runs, wherever they are executed, and of those that wait for approval.

use std::sync::Arc;
use std::time::Duration;

use super::RunReader;
use crate::runs::error::RunError;
use crate::runs::live::live_run::LiveRun;
use crate::runs::store::event_stream::Committed;

/// Interval at which the journal is read even without a notification, which may be lost.
const POLL: Duration = Duration::from_millis(500);

/// News of a run that another node executes.
pub(super) enum ElsewhereNews {
    /// What its row says now.
    Row { last_seq: u64, is_over: bool },
    /// This node executes it.
    Here(Arc<LiveRun>),
    /// The daemon drains.
    Drained,
}

impl RunReader {
    /// Waits until a run that another node executes has events after `after`, is over, or comes
    /// here.
    ///
    /// # Errors
    /// When the run does not exist, or the journal cannot be read.
    pub(super) async fn wait_elsewhere(
        &self,
        id: &str,
        after: u64,
    ) -> Result<ElsewhereNews, RunError> {
        let (watch, mut drained) = (self.cluster.watch(id), self.live.drained());
        loop {
            // This comes before the read, so that nothing is missed.
            let changed = watch.notified();
            if let Some(live) = self.live.get(id) {
                return Ok(ElsewhereNews::Here(live));
            }

            let row = self.store.row(id).await?;
            if row.is_over || row.head.seq > after {
                return Ok(ElsewhereNews::Row { last_seq: row.head.seq, is_over: row.is_over });
            }

            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(POLL) => {}
                _ = drained.wait_for(|drained| *drained) => return Ok(ElsewhereNews::Drained),
            }
        }
    }

    /// Waits until a cancelled run that another node executes is over. If it comes here meanwhile,
    /// it is cancelled here.
    ///
    /// # Errors
    /// When the run does not exist, or the journal cannot be read.
    pub(in crate::runs) async fn ended_elsewhere(&self, id: &str) -> Result<(), RunError> {
        loop {
            // No event has this number, so that only the end of the run is news.
            match self.wait_elsewhere(id, u64::MAX).await? {
                ElsewhereNews::Row { .. } | ElsewhereNews::Drained => return Ok(()),
                // This node learns of the cancellation only with its next heartbeat.
                ElsewhereNews::Here(live) => {
                    live.cancel();
                    let mut committed = live.stream.watch();
                    let ended = committed
                        .wait_for(|committed| committed.is_over || committed.is_refused)
                        .await;
                    if ended.is_ok_and(|committed| committed.is_over) {
                        return Ok(());
                    }
                    // Its lease was lost, so that another node executes it now: keep waiting.
                }
            }
        }
    }

    /// Waits until a run has durable events after `after`, is over, or the daemon drains.
    pub async fn progressed(&self, id: &str, after: u64) {
        let Some(live) = self.live.get(id) else {
            // The caller reads the run next, and gets the error then.
            drop(self.wait_elsewhere(id, after).await);
            return;
        };

        let (mut watch, mut drained) = (live.stream.watch(), self.live.drained());
        let has_news = |committed: &Committed| {
            committed.is_over || committed.head.seq > after || live.stream.is_abandoned()
        };
        // Either also resolves when the sender of what it watches is gone.
        tokio::select! {
            _ = watch.wait_for(has_news) => {}
            _ = drained.wait_for(|drained| *drained) => {}
        }
    }
}
