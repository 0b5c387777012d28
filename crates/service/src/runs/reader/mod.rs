//! What users see of runs, open or finished: their records, one by one, in `listing`s and in the
//! `comparison` of the sides of a split; what they add up to (`overview`); their events (`event_reader`), their `trace`, and
//! `waiting` for progress. Open runs are read from memory, all others from the journal.

pub(super) mod comparison;
pub(super) mod event_reader;
pub(super) mod listing;
pub(super) mod overview;
pub(super) mod trace;
mod waiting;

use std::sync::Arc;

use super::cluster_link::ClusterLink;
use super::error::RunError;
use super::live::LiveRuns;
use super::live::live_run::LiveRun;
use super::live::writings::Writings;
use super::record::RunRecord;
use super::search::indexed::Indexed;
use super::store::RunStore;
use super::store::replay::durable_counts;

/// Reads runs wherever they are: in this process, in the journal, or at another node.
#[derive(Clone)]
pub struct RunReader {
    store: Arc<RunStore>,
    live: Arc<LiveRuns>,
    cluster: Arc<ClusterLink>,
    indexed: Arc<Indexed>,
}

impl RunReader {
    pub(super) fn new(
        store: Arc<RunStore>,
        live: Arc<LiveRuns>,
        cluster: Arc<ClusterLink>,
        indexed: Arc<Indexed>,
    ) -> Self {
        Self { store, live, cluster, indexed }
    }

    /// The journal.
    pub(super) fn store(&self) -> &RunStore {
        &self.store
    }

    /// A run with its owner.
    ///
    /// # Errors
    /// When it does not exist, or the journal cannot be read.
    pub async fn get(&self, id: &str) -> Result<(String, RunRecord), RunError> {
        let (owner, mut record) = self.unlabelled(id).await?;
        self.store.label(std::slice::from_mut(&mut record)).await?;
        Ok((owner, record))
    }

    /// A run with its owner and the labels of its acceptance.
    async fn unlabelled(&self, id: &str) -> Result<(String, RunRecord), RunError> {
        if let Some(live) = self.live.unfinished(id) {
            self.count_events(&live).await;
            let record = live.record();
            if live.is_counted() && !live.has_reviews() {
                return Ok((live.owner.clone(), record));
            }

            // Reviews are in the journal only.
            let reviews = self.store.row(id).await?.reviews;
            return Ok((live.owner.clone(), record.with_reviews(reviews)));
        }

        let row = self.store.row(id).await?;
        let mut record =
            RunRecord::of_row(&row).map_err(|error| RunError::Unreadable(error.to_string()))?;
        self.cluster.name_missing_agents(std::slice::from_mut(&mut record)).await?;
        Ok((row.owner, record))
    }

    /// What the models of a run are writing at the moment; `None` unless this process executes the
    /// run.
    pub fn writings(&self, id: &str) -> Option<Arc<Writings>> {
        self.live.unfinished(id).map(|live| Arc::clone(&live.writings))
    }

    /// Lets the record of a run that is not replayed yet show its durable counts.
    async fn count_events(&self, live: &LiveRun) {
        if live.is_counted() {
            return;
        }

        let (id, seq) = (live.stream.id.clone(), live.stream.committed().head.seq);
        let counts = self.store.read(move |journal| durable_counts(journal, &id, seq)).await;
        // Events that cannot be read fail the replay, which reports them.
        if let Ok(progress) = counts {
            live.set_counts(progress);
        }
    }
}
