//! Counts open runs, in total and by owner, so that no owner takes all places. If several nodes
//! share the journal, its store counts the runs of all nodes when it accepts one; the counts here
//! refuse most excess runs before that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::runs::error::RunError;
use prime_settings::Server;

/// The runs that are accepted and not over, or being accepted.
#[derive(Default)]
pub struct Admission(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    by_owner: HashMap<String, usize>,
}

impl Counts {
    /// Checks the limits; `elsewhere` are the open runs that this node does not execute.
    fn check(&self, owner: &str, server: &Server, elsewhere: usize) -> Result<(), RunError> {
        let (queue_max, own_max) = (server.queue_max, server.open_runs_max_of(owner));

        let all = self.all.saturating_add(elsewhere);
        if all >= queue_max as usize {
            return Err(RunError::Full { open: all, limit: queue_max });
        }

        let open = self.by_owner.get(owner).copied().unwrap_or_default();
        if open >= own_max as usize {
            return Err(RunError::OwnerFull { open, limit: own_max });
        }
        Ok(())
    }

    fn add(&mut self, owner: &str) {
        self.all += 1;
        *self.by_owner.entry(owner.to_owned()).or_default() += 1;
    }
}

impl Admission {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open runs of this node.
    pub fn open(&self) -> usize {
        self.counts().all
    }

    /// Checks for room without taking it.
    ///
    /// # Errors
    /// `Full` or `OwnerFull`.
    pub fn check(&self, owner: &str, server: &Server, elsewhere: usize) -> Result<(), RunError> {
        self.counts().check(owner, server, elsewhere)
    }

    /// Counts a new run, if there is room.
    ///
    /// # Errors
    /// `Full` or `OwnerFull`.
    pub fn reserve(
        self: &Arc<Self>,
        owner: &str,
        server: &Server,
        elsewhere: usize,
    ) -> Result<RunSlot, RunError> {
        // One lock for check and count: two requests must not take the same last place.
        let mut counts = self.counts();
        counts.check(owner, server, elsewhere)?;
        counts.add(owner);
        drop(counts);

        Ok(RunSlot { admission: Arc::clone(self), owner: owner.to_owned() })
    }

    /// Counts a run even if there is no room.
    pub fn take(self: &Arc<Self>, owner: &str) -> RunSlot {
        self.counts().add(owner);
        RunSlot { admission: Arc::clone(self), owner: owner.to_owned() }
    }
}

/// Counts as one open run of its owner until dropped.
pub struct RunSlot {
    admission: Arc<Admission>,
    owner: String,
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut counts = self.admission.counts();
        counts.all -= 1;

        if let Some(open) = counts.by_owner.get_mut(&self.owner) {
            *open -= 1;
            // Owners come and go: the map holds only those with open runs.
            if *open == 0 {
                counts.by_owner.remove(&self.owner);
            }
        }
    }
}
