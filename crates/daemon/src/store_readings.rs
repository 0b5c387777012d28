//! What `/metrics` says about a shared journal; its store is asked no more often than needed.

use std::time::Duration;

use tokio::time::timeout;

use super::latest_check::LatestCheck;
use prime_journal::{ClusterStatus, OutboxCount};
use prime_service::runs::{RunError, Runs};

/// Longest wait for the journal. Without an answer, the metrics are shown without what it would
/// say.
const STORE_WAIT: Duration = Duration::from_secs(1);
/// How long an answer of a shared journal's store counts. Its size is a sum over all runs, the
/// nodes are a few rows.
const NODES_EVERY: Duration = Duration::from_secs(5);
const SIZE_EVERY: Duration = Duration::from_mins(1);

/// What the store of a shared journal said last, however many scrape.
#[derive(Debug)]
pub struct StoreReadings {
    bytes: LatestCheck<Option<u64>>,
    nodes: LatestCheck<Option<ClusterStatus>>,
    messages: LatestCheck<Option<Vec<OutboxCount>>>,
}

impl Default for StoreReadings {
    fn default() -> Self {
        Self {
            bytes: LatestCheck::new(SIZE_EVERY),
            nodes: LatestCheck::new(NODES_EVERY),
            messages: LatestCheck::new(NODES_EVERY),
        }
    }
}

/// An answer of the journal, if there is one in time.
async fn read<T>(answer: impl Future<Output = Result<T, RunError>>) -> Option<T> {
    timeout(STORE_WAIT, answer).await.ok()?.ok()
}

impl StoreReadings {
    /// The content of the journal in bytes, and the nodes, if it is shared.
    pub async fn of(&self, runs: &Runs) -> (Option<u64>, Option<ClusterStatus>) {
        let bytes = async { read(runs.store().size()).await.map(|size| size.bytes) };
        if !runs.is_shared() {
            return (bytes.await, None);
        }

        let nodes = async { read(runs.cluster()).await.flatten() };
        tokio::join!(self.bytes.get(bytes), self.nodes.get(nodes))
    }

    /// The messages to webhooks; `None` without webhooks, or if they are not known at present.
    pub async fn messages(&self, runs: &Runs) -> Option<Vec<OutboxCount>> {
        if !runs.has_webhooks() {
            return None;
        }
        self.messages.get(async { read(runs.messages()).await }).await
    }
}
