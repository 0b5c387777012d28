//! Runs of a shared journal that this node does not execute: those who wait here for news of them,
//! and what they wait for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::event_stream::Committed;
use super::live_run::LiveRun;
use super::record::{RunRecord, Status};
use super::service::{RunError, Runs};

/// How often the journal is read anyway: a notification may be lost.
const POLL: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct Elsewhere(Mutex<HashMap<String, Weak<Notify>>>);

impl Elsewhere {
    /// Notified when the run may have new events.
    fn watch(&self, id: &str) -> Arc<Notify> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = waiting.get(id).and_then(Weak::upgrade) {
            return known;
        }
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiting.insert(id.to_owned(), Arc::downgrade(&notify));
        notify
    }

    pub(super) fn changed(&self, id: &str) {
        let known =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).and_then(Weak::upgrade);
        if let Some(notify) = known {
            notify.notify_waiters();
        }
    }
}

/// How a run that another node executes went on.
pub(super) enum Onward {
    /// What its row says now.
    Row { last_seq: u64, is_over: bool },
    /// This node executes it.
    Here(Arc<LiveRun>),
    /// The daemon drains.
    Drained,
}

impl Runs {
    /// Lets the records of open runs that no live node can take say which agents they wait for.
    pub(super) async fn say_what_is_missing(
        &self,
        records: &mut [RunRecord],
    ) -> Result<(), RunError> {
        if records.iter().all(|record| record.status.is_over()) {
            return Ok(());
        }
        let Some(blocked) = self.with_cluster(|cluster| cluster.blocked()).await? else {
            return Ok(());
        };
        for record in records.iter_mut().filter(|record| record.waiting_for.is_none()) {
            if let Some(run) = blocked.iter().find(|run| run.id == record.id) {
                record.status = Status::Queued;
                record.waiting_for = Some(format!(
                    "a node with {}: no live node has that",
                    run.missing.join(" and ")
                ));
            }
        }
        Ok(())
    }

    /// Waits until a run that another node executes has events after `after`, is over, or comes
    /// here.
    pub(super) async fn wait_elsewhere(&self, id: &str, after: u64) -> Result<Onward, RunError> {
        let (watch, mut drained) = (self.elsewhere.watch(id), self.drained());
        loop {
            // Before the read, so that nothing is missed.
            let changed = watch.notified();
            if let Some(live) = self.live(id) {
                return Ok(Onward::Here(live));
            }
            let row = self.row(id).await?;
            if row.is_over || row.head.seq > after {
                return Ok(Onward::Row { last_seq: row.head.seq, is_over: row.is_over });
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(POLL) => {}
                _ = drained.wait_for(|drained| *drained) => return Ok(Onward::Drained),
            }
        }
    }

    /// Waits until a run that another node executes is over.
    pub(super) async fn ended_elsewhere(&self, id: &str) -> Result<(), RunError> {
        loop {
            match self.wait_elsewhere(id, u64::MAX).await? {
                Onward::Row { .. } | Onward::Drained => return Ok(()),
                // An end that was asked for meanwhile is heard with the next heartbeat.
                Onward::Here(live) => {
                    live.cancel();
                    let mut committed = live.stream.watch();
                    let ended = committed
                        .wait_for(|committed| committed.is_over || committed.is_refused)
                        .await;
                    if ended.is_ok_and(|committed| committed.is_over) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until a run has durable events after `after`, is over, or the daemon drains.
    pub async fn progressed(&self, id: &str, after: u64) {
        let Some(live) = self.live(id) else {
            if self.is_shared() {
                // Whoever waits reads the run next, and learns what is wrong.
                drop(self.wait_elsewhere(id, after).await);
            }
            return;
        };
        let (mut watch, mut drained) = (live.stream.watch(), self.drained());
        let has_news = |committed: &Committed| {
            committed.is_over || committed.head.seq > after || live.stream.is_abandoned()
        };
        // Either ends at an end of what is watched, too.
        tokio::select! {
            _ = watch.wait_for(has_news) => {}
            _ = drained.wait_for(|drained| *drained) => {}
        }
    }
}
