//! The nodes that share the journal, if it is shared: what this node asks them, what it tells their
//! store, and who waits here for news of a run that another node executes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::Notify;

use super::error::RunError;
use super::record::{RunRecord, Status};
use prime_journal::{Cluster, ClusterStatus, JournalError};

/// The other nodes. There are none if the journal is this daemon's own.
#[derive(Default)]
pub struct ClusterLink {
    cluster: OnceLock<Arc<dyn Cluster>>,
    /// Waiters for news, by run. An entry is dead once it has no waiters.
    waiting: Mutex<HashMap<String, Weak<Notify>>>,
}

impl ClusterLink {
    /// True if other nodes execute runs of the same journal.
    pub fn is_shared(&self) -> bool {
        self.cluster.get().is_some()
    }

    /// Notes that other nodes may execute runs of the same journal from now on.
    pub fn share(&self, cluster: Arc<dyn Cluster>, open_runs_max: u32) {
        drop(self.cluster.set(cluster));
        self.limit_open_runs(open_runs_max);
    }

    /// Tells the store, if it is shared, how many runs may be open there. This node takes all of
    /// them if need be.
    pub fn limit_open_runs(&self, open_runs_max: u32) {
        if let Some(cluster) = self.cluster.get() {
            cluster.limit_open_runs(open_runs_max.into());
            cluster.set_capacity(open_runs_max as usize);
        }
    }

    /// Number of open runs that other nodes hold or may take, as far as this one knows.
    pub fn open_elsewhere(&self) -> usize {
        let open = self.cluster.get().map_or(0, |cluster| cluster.open_elsewhere());
        usize::try_from(open).unwrap_or(usize::MAX)
    }

    /// The nodes of a shared journal and what they hold; `None` if the journal is this daemon's
    /// own.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn status(&self) -> Result<Option<ClusterStatus>, RunError> {
        self.ask(|cluster| cluster.status()).await
    }

    /// Asks every node to end a run.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn request_cancel(&self, id: &str) -> Result<(), RunError> {
        let id = id.to_owned();
        self.ask(move |cluster| cluster.request_cancel(&id)).await.map(drop)
    }

    /// Lets the records of open runs that no live node can take say which agents they wait for.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn name_missing_agents(&self, records: &mut [RunRecord]) -> Result<(), RunError> {
        if records.iter().all(|record| record.status.is_over()) {
            return Ok(());
        }
        let Some(blocked) = self.ask(|cluster| cluster.blocked()).await? else {
            return Ok(());
        };

        // The reason why this node itself waits is more precise, and stays.
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

    /// Asks the other nodes on a thread that may block.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Cluster) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<Option<T>, RunError> {
        let Some(cluster) = self.cluster.get().map(Arc::clone) else { return Ok(None) };
        let answer = tokio::task::spawn_blocking(move || ask(cluster.as_ref())).await;
        Ok(Some(answer.map_err(|_| RunError::Draining)??))
    }

    /// Notified when the run may have new events.
    pub fn watch(&self, id: &str) -> Arc<Notify> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = waiting.get(id).and_then(Weak::upgrade) {
            return known;
        }

        // Nothing else removes dead entries.
        waiting.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        waiting.insert(id.to_owned(), Arc::downgrade(&notify));
        notify
    }

    /// Wakes the waiters for news of a run.
    pub fn changed(&self, id: &str) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = waiting.get(id).and_then(Weak::upgrade);
        drop(waiting);
        if let Some(notify) = known {
            notify.notify_waiters();
        }
    }
}
