//! The nodes that share the journal, if it is shared: what this one asks of them, and what it tells
//! their store.

use std::sync::Arc;

use super::service::{RunError, Runs};
use prime_journal::{Cluster, ClusterStatus, JournalError};

impl Runs {
    /// Whether other nodes execute runs of the same journal.
    pub fn is_shared(&self) -> bool {
        self.cluster.get().is_some()
    }

    /// Other nodes may execute runs of the same journal from now on.
    pub(super) fn share(&self, cluster: Arc<dyn Cluster>) {
        drop(self.cluster.set(cluster));
        self.limit_open_runs();
    }

    /// Tells the store, if it is shared, how many runs may be open there, of which this node takes
    /// all if need be.
    pub(super) fn limit_open_runs(&self) {
        if let Some(cluster) = self.cluster.get() {
            let most = self.app().settings().server.queue_max;
            cluster.limit_open_runs(most.into());
            cluster.set_capacity(most as usize);
        }
    }

    /// Open runs that other nodes hold or may take, as far as this one knows.
    pub(super) fn open_elsewhere(&self) -> usize {
        let open = self.cluster.get().map_or(0, |cluster| cluster.open_elsewhere());
        usize::try_from(open).unwrap_or(usize::MAX)
    }

    /// The nodes of a shared journal and what they hold; `None` if the journal is this daemon's
    /// own.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn cluster(&self) -> Result<Option<ClusterStatus>, RunError> {
        self.with_cluster(|cluster| cluster.status()).await
    }

    /// Asks the other nodes on a thread that may block.
    pub(super) async fn with_cluster<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Cluster) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<Option<T>, RunError> {
        let Some(cluster) = self.cluster.get().map(Arc::clone) else { return Ok(None) };
        let answer = tokio::task::spawn_blocking(move || ask(cluster.as_ref())).await;
        Ok(Some(answer.map_err(|_| RunError::Draining)??))
    }
}
