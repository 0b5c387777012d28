//! The runs that this process executes: each as a `live_run` in memory, counted by `admission`
//! until it is over; and the signal by which they, and those who watch them, learn that the daemon
//! drains.

pub(super) mod admission;
pub(super) mod live_run;
pub(super) mod standstill;
pub(super) mod writings;

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::RunError;
use admission::{Admission, RunSlot};
use live_run::LiveRun;
use prime_settings::Server;

/// The open runs of this process.
pub struct LiveRuns {
    runs: DashMap<String, Arc<LiveRun>>,
    admission: Arc<Admission>,
    draining: watch::Sender<bool>,
}

impl Default for LiveRuns {
    fn default() -> Self {
        Self {
            runs: DashMap::new(),
            admission: Arc::default(),
            draining: watch::Sender::new(false),
        }
    }
}

impl LiveRuns {
    pub fn get(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.runs.get(id).map(|live| Arc::clone(&live))
    }

    /// The run, unless its end is committed: then its result is in its row, even while it is still
    /// registered.
    pub fn unfinished(&self, id: &str) -> Option<Arc<LiveRun>> {
        self.get(id).filter(|live| !live.stream.committed().is_over)
    }

    /// The runs some of whose steps wait for approval.
    pub fn waiting_for_approval(&self) -> Vec<Arc<LiveRun>> {
        let waiting = self.runs.iter().filter(|live| !live.waits.is_empty());
        waiting.map(|live| Arc::clone(&live)).collect()
    }

    /// The runs that have told nothing new for `stuck_ms`, each with the time since which by the wall
    /// clock.
    pub fn stuck(&self, now: Instant, stuck_ms: u64) -> Vec<(Arc<LiveRun>, u64)> {
        let stuck = self.runs.iter().filter_map(|live| {
            let since_ms = live.standstill.since(now, stuck_ms)?;
            Some((Arc::clone(&live), since_ms))
        });
        stuck.collect()
    }

    /// Makes a run visible.
    pub fn insert(&self, live: &Arc<LiveRun>) {
        self.runs.insert(live.stream.id.clone(), Arc::clone(live));
    }

    /// Removes the run, unless another execution of it was registered since.
    pub fn forget(&self, live: &Arc<LiveRun>) {
        self.runs.remove_if(&live.stream.id, |_, known| Arc::ptr_eq(known, live));
    }

    /// Runs that are accepted and not over.
    pub fn count(&self) -> usize {
        self.admission.open()
    }

    /// Checks for room, so that a run is refused before anything is computed for it. `elsewhere`
    /// are the open runs of other nodes.
    ///
    /// # Errors
    /// `Full`, `OwnerFull` or `Draining`.
    pub fn check_room(
        &self,
        owner: &str,
        server: &Server,
        elsewhere: usize,
    ) -> Result<(), RunError> {
        if self.is_draining() {
            return Err(RunError::Draining);
        }
        self.admission.check(owner, server, elsewhere)
    }

    /// Counts a new run, within the limits.
    ///
    /// # Errors
    /// `Full` or `OwnerFull`.
    pub fn reserve_slot(
        &self,
        owner: &str,
        server: &Server,
        elsewhere: usize,
    ) -> Result<RunSlot, RunError> {
        self.admission.reserve(owner, server, elsewhere)
    }

    /// Counts a run that was accepted earlier, beyond the limits if need be.
    pub fn slot_for_open_run(&self, owner: &str) -> RunSlot {
        self.admission.take(owner)
    }

    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Becomes true when draining begins.
    pub fn drained(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Refuses new runs from now on, and ends the streams of watchers.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }
}
