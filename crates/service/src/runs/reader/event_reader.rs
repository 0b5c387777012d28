//! Reads the events of a run: only durable ones, in order, each once.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::{Stream, stream};

use super::RunReader;
use super::waiting::ElsewhereNews;
use crate::runs::error::RunError;
use crate::runs::live::live_run::LiveRun;
use prime_journal::Segment;

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

    /// The number of the last of them.
    pub fn last_seq(&self) -> u64 {
        self.segment.last_seq()
    }
}

/// The position of a reader of events.
struct Reader {
    runs: RunReader,
    id: String,
    /// The last event that was returned.
    after: u64,
    /// The run, while this process executes it.
    live: Option<Arc<LiveRun>>,
    /// True to wait for events to come.
    follows: bool,
    /// Segments that were read and not returned yet.
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
                self.read_elsewhere().await?;
                continue;
            };

            if live.stream.is_abandoned() {
                // Another node continues it.
                self.live = None;
                continue;
            }
            // The state is marked as seen before it is read, so that a later commit wakes the
            // reader.
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
                let mut drained = self.runs.live.drained();
                tokio::select! {
                    changed = watch.changed() => self.is_done = changed.is_err(),
                    _ = drained.wait_for(|drained| *drained) => self.is_done = true,
                }
            }
        }
    }

    /// Waits for events of a run that this node does not execute: another one may, or it waits for
    /// approval.
    async fn read_elsewhere(&mut self) -> Result<(), RunError> {
        self.fetch().await?;
        if !self.ready.is_empty() {
            return Ok(());
        }

        if !self.follows {
            self.is_done = true;
            return Ok(());
        }

        match self.runs.wait_elsewhere(&self.id, self.after).await? {
            ElsewhereNews::Here(live) => self.live = Some(live),
            ElsewhereNews::Row { last_seq, is_over } => {
                self.is_done = is_over && last_seq <= self.after;
            }
            ElsewhereNews::Drained => self.is_done = true,
        }
        Ok(())
    }

    async fn fetch(&mut self) -> Result<(), RunError> {
        let segments = self.runs.store.segments(&self.id, self.after, READ_BYTES).await?;
        self.ready.extend(segments.into_iter().map(Arc::new));
        Ok(())
    }
}

impl RunReader {
    /// The durable events of a run after `after`; with `follows`, also those to come, until the run
    /// is over or the daemon drains.
    pub fn events(
        &self,
        id: &str,
        after: u64,
        follows: bool,
    ) -> impl Stream<Item = Result<EventBatch, RunError>> + use<> {
        let reader = Reader {
            runs: self.clone(),
            id: id.to_owned(),
            after,
            live: self.live.get(id),
            follows,
            ready: VecDeque::new(),
            is_done: false,
        };
        stream::try_unfold(reader, |mut reader| async move {
            Ok(reader.next().await?.map(|events| (events, reader)))
        })
    }
}
