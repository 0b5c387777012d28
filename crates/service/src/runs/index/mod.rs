//! An index of a run's steps in memory: what every trajectory did, in 16 bytes a step. It answers
//! questions about a whole run, however long, without reading its events again.
//!
//! It is made from durable events only, at the first question, and then extended by the events
//! since. It is never saved: the journal has everything that it holds.
//!
//! - `run_index`: the index; `trajectory_index`: its part for one trajectory. `step` and
//!   `summary`: what these are made of. `landmarks`: votes and ends. `cache`: the indexes in use,
//!   bounded.
//! - Answers: `tree` (rounds and trajectories), `shape` (a trajectory in columns), `find` (the next
//!   step of a kind), `divergence` (of two runs), `step_list` (steps as they were recorded),
//!   `step_detail` (one of them with its states), `explanation` (in words).

mod cache;
pub(super) mod divergence;
pub(super) mod explanation;
pub(super) mod find;
pub(super) mod landmarks;
mod run_index;
pub(super) mod shape;
mod step;
pub(super) mod step_detail;
pub(super) mod step_list;
mod summary;
mod trajectory_index;
pub(super) mod tree;

use std::ops::RangeInclusive;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::error::RunError;
use super::store::RunStore;
use cache::IndexCache;
use prime_journal::{Journal, JournalError};
use run_index::RunIndex;

/// Bytes of events per read of the journal.
const READ_BYTES: usize = 4 << 20;
/// Bounds of the bytes of events by which one question extends an index. Between them, an index
/// grows by as many bytes as it has, so that the first answers come soon.
const EXTEND_BYTES: RangeInclusive<usize> = (1 << 20)..=(16 << 20);
/// Maximum number of steps of a run that are indexed: 128 MiB.
const STEPS_MAX: usize = 8 << 20;

/// Adds the durable events that the index lacks, up to a limit for one question. Returns whether
/// there may be more.
fn extend(index: &mut RunIndex, journal: &dyn Journal, id: &str) -> Result<bool, JournalError> {
    let most = index.bytes_read.clamp(*EXTEND_BYTES.start(), *EXTEND_BYTES.end());
    let mut bytes = 0;
    while bytes < most && index.steps < STEPS_MAX {
        let segments = journal.segments(id, index.seq, READ_BYTES.min(most - bytes))?;
        let Some(last) = segments.last().map(prime_journal::Segment::last_seq) else {
            return Ok(false);
        };

        let read = segments.iter().map(|segment| segment.body.len()).sum::<usize>();
        (bytes, index.bytes_read) = (bytes + read, index.bytes_read + read);
        let known = index.seq;

        for (seq, event) in
            segments.iter().flat_map(prime_journal::Segment::events).filter(|(seq, _)| *seq > known)
        {
            index.add(seq, event);
        }

        index.seq = index.seq.max(last);
        // Nothing new came: stop, rather than read the same segment again.
        if last <= known {
            return Ok(false);
        }
    }
    Ok(index.steps < STEPS_MAX)
}

/// Answers questions about the steps of runs, each from an index that is built on demand.
pub struct StepIndexes {
    store: Arc<RunStore>,
    cache: Arc<IndexCache>,
}

impl StepIndexes {
    pub(super) fn new(store: Arc<RunStore>) -> Self {
        Self { store, cache: Arc::default() }
    }

    /// Asks a run's index, after bringing it up to date as far as one question may. `answer` is
    /// told whether there may be more events than are indexed.
    async fn ask<T: Send + 'static>(
        &self,
        id: &str,
        answer: impl FnOnce(&mut RunIndex, &dyn Journal, bool) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let index = self.cache.get(id);
        let (cache, id) = (Arc::clone(&self.cache), id.to_owned());
        let ask = move |journal: &dyn Journal| {
            let mut index: MutexGuard<'_, RunIndex> =
                index.lock().unwrap_or_else(PoisonError::into_inner);
            let has_more = extend(&mut index, journal, &id)?;
            let answered = answer(&mut index, journal, has_more);

            // The index must not be locked here: the cache has a lock of its own.
            let bytes = index.bytes();
            drop(index);
            cache.note_size(&id, bytes);
            Ok(answered)
        };
        self.store.read(ask).await?
    }
}
