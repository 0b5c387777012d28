//! Reads the events of a run: only durable ones, in order, each once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};

use super::live_run::LiveRun;
use super::service::{RunError, Runs};
use prime_journal::Segment;

/// How often the journal is asked for events of a run that another node executes.
const POLL: Duration = Duration::from_millis(250);
/// Bytes of events per read.
const READ_BYTES: usize = 256 << 10;

/// The events of a segment after one of them.
#[derive(Clone, Debug)]
pub struct EventBatch {
    segment: Arc<Segment>,
    after: u64,
}

impl EventBatch {
    /// The events with their numbers, without newlines.
    pub fn events(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segment.events().filter(|(seq, _)| *seq > self.after)
    }
}

struct Reader {
    runs: Arc<Runs>,
    id: String,
    after: u64,
    live: Option<Arc<LiveRun>>,
    follows: bool,
    ready: VecDeque<Arc<Segment>>,
    is_done: bool,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<EventBatch>, RunError> {
        loop {
            if let Some(segment) = self.ready.pop_front() {
                let after = std::mem::replace(&mut self.after, segment.last_seq());
                return Ok(Some(EventBatch { segment, after }));
            }
            if self.is_done {
                return Ok(None);
            }
            let Some(live) = self.live.clone() else {
                self.fetch().await?;
                if self.ready.is_empty() {
                    self.wait_elsewhere().await?;
                }
                continue;
            };
            if live.stream.is_abandoned() {
                self.live = None;
                continue;
            }
            let mut watch = live.stream.watch();
            let committed = watch.borrow_and_update().clone();
            if committed.head.seq > self.after {
                match live.stream.cached_segment(self.after) {
                    Some(segment) => self.ready.push_back(segment),
                    None => self.fetch().await?,
                }
            } else if committed.is_over || !self.follows {
                self.is_done = true;
            } else {
                let mut drained = self.runs.drained();
                tokio::select! {
                    changed = watch.changed() => self.is_done = changed.is_err(),
                    _ = drained.wait_for(|drained| *drained) => self.is_done = true,
                }
            }
        }
    }

    /// Waits for events of a run that this node does not execute.
    async fn wait_elsewhere(&mut self) -> Result<(), RunError> {
        if !self.follows || !self.runs.is_shared() {
            self.is_done = true;
            return Ok(());
        }
        let row = self.runs.row(&self.id).await?;
        if row.is_over {
            // Its last events may be younger than the read before.
            self.is_done = row.head.seq <= self.after;
            return Ok(());
        }
        let mut drained = self.runs.drained();
        self.is_done = tokio::time::timeout(POLL, drained.wait_for(|drained| *drained)).await.is_ok();
        self.live = self.runs.live(&self.id);
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), RunError> {
        let segments = self.runs.segments(&self.id, self.after, READ_BYTES).await?;
        self.ready.extend(segments.into_iter().map(Arc::new));
        Ok(())
    }
}

impl Runs {
    /// Waits until a run has durable events after `after`, is over, or the daemon drains.
    pub async fn progressed(&self, id: &str, after: u64) {
        let Some(live) = self.live(id) else { return };
        let (mut watch, mut drained) = (live.stream.watch(), self.drained());
        let has_news = |committed: &super::event_stream::Committed| committed.is_over || committed.head.seq > after;
        // Either ends at an end of what is watched, too.
        tokio::select! {
            _ = watch.wait_for(has_news) => {}
            _ = drained.wait_for(|drained| *drained) => {}
        }
    }

    /// The durable events of a run after `after`; with `follows`, also those to come, until the run is over or the daemon
    /// drains.
    pub fn events(
        self: &Arc<Self>,
        id: &str,
        after: u64,
        follows: bool,
    ) -> impl Stream<Item = Result<EventBatch, RunError>> + use<> {
        let reader = Reader {
            runs: Arc::clone(self),
            id: id.to_owned(),
            after,
            live: self.live(id),
            follows,
            ready: VecDeque::new(),
            is_done: false,
        };
        stream::try_unfold(reader, |mut reader| async move { Ok(reader.next().await?.map(|events| (events, reader))) })
    }
}
