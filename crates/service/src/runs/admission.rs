//! Counts open runs, in all and of each owner, so that no owner takes all places. Where several
//! nodes share the journal, its store counts those of all nodes when it accepts one; what is known
//! here refuses most of them before that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::service::{RunError, Runs};
use prime_settings::Server;

/// The runs that are accepted and not over, or being accepted.
#[derive(Default)]
pub(super) struct OpenRuns(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    of_owners: HashMap<String, usize>,
}

impl Counts {
    fn of(&self, owner: &str) -> usize {
        self.of_owners.get(owner).copied().unwrap_or_default()
    }

    /// `elsewhere`: open runs that this node does not execute.
    fn check(&self, owner: &str, server: &Server, elsewhere: usize) -> Result<(), RunError> {
        let (queue_max, own_max) = (server.queue_max, server.open_runs_max_of(owner));
        let all = self.all.saturating_add(elsewhere);
        if all >= queue_max as usize {
            return Err(RunError::Full { open: all, limit: queue_max });
        }
        let open = self.of(owner);
        if open >= own_max as usize {
            return Err(RunError::OwnerFull { open, limit: own_max });
        }
        Ok(())
    }

    fn add(&mut self, owner: &str) {
        self.all += 1;
        *self.of_owners.entry(owner.to_owned()).or_default() += 1;
    }
}

impl OpenRuns {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as one open run of its owner until dropped.
pub(super) struct RunSlot {
    runs: Arc<Runs>,
    owner: String,
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut counts = self.runs.open.counts();
        counts.all -= 1;
        if let Some(open) = counts.of_owners.get_mut(&self.owner) {
            *open -= 1;
            if *open == 0 {
                counts.of_owners.remove(&self.owner);
            }
        }
    }
}

impl Runs {
    /// Runs that this node executes, and that are not over.
    pub fn open_runs(&self) -> usize {
        self.open.counts().all
    }

    /// Runs of all nodes that are accepted and not over, as far as this one knows.
    pub fn open_runs_of_all(&self) -> usize {
        self.open_runs().saturating_add(self.open_elsewhere())
    }

    /// Checks for room, so that a run is refused before anything is computed for it.
    /// [`Runs::accept`] decides.
    ///
    /// # Errors
    /// `Full`, `OwnerFull` or `Draining`.
    pub fn has_room(&self, owner: &str) -> Result<(), RunError> {
        if self.is_draining() {
            return Err(RunError::Draining);
        }
        self.open.counts().check(owner, &self.app().settings().server, self.open_elsewhere())
    }

    pub(super) fn reserve_slot(self: &Arc<Self>, owner: &str) -> Result<RunSlot, RunError> {
        let app = self.app();
        let mut counts = self.open.counts();
        counts.check(owner, &app.settings().server, self.open_elsewhere())?;
        counts.add(owner);
        drop(counts);
        Ok(RunSlot { runs: Arc::clone(self), owner: owner.to_owned() })
    }

    /// A slot for a run that was accepted earlier, beyond the limits if need be.
    pub(super) fn slot_for_open_run(self: &Arc<Self>, owner: &str) -> RunSlot {
        self.open.counts().add(owner);
        RunSlot { runs: Arc::clone(self), owner: owner.to_owned() }
    }
}
