//! Runs of a journal that several nodes share: those whose lease this node gets or loses.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::Execution;
use crate::runs::error::RunError;
use prime_journal::Cluster;

/// What the journal says of this node's leases, in the order in which it says it. Its methods do
/// not block.
pub struct Leases {
    /// Runs that were granted and neither started nor lost since, with the number of the grant.
    granted: Mutex<(HashMap<String, u64>, u64)>,
    starts: Sender<(String, u64)>,
    waiting: Mutex<Option<Receiver<(String, u64)>>>,
    /// Empty until runs are executed; before that, nothing can be lost.
    execution: OnceLock<Weak<Execution>>,
}

impl Default for Leases {
    fn default() -> Self {
        let (starts, waiting) = channel();
        Self {
            granted: Mutex::default(),
            starts,
            waiting: Mutex::new(Some(waiting)),
            execution: OnceLock::new(),
        }
    }
}

impl Leases {
    fn granted(&self) -> MutexGuard<'_, (HashMap<String, u64>, u64)> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn execution(&self) -> Option<Arc<Execution>> {
        self.execution.get().and_then(Weak::upgrade)
    }

    /// Which of these needs of runs this node meets at present; none before it executes runs.
    pub fn needs_met(&self, asked: &[String]) -> Vec<String> {
        self.execution().map(|execution| execution.app().needs_met(asked)).unwrap_or_default()
    }

    /// The node got the lease of a run: it starts soon.
    pub fn start(&self, id: String) {
        let mut granted = self.granted();
        granted.1 += 1;
        let number = granted.1;
        granted.0.insert(id.clone(), number);
        drop(granted);
        // The process ends.
        drop(self.starts.send((id, number)));
    }

    /// The lease is lost. After this, nothing that the run did under it is written.
    pub fn stop(&self, id: &str) {
        self.granted().0.remove(id);
        if let Some(execution) = self.execution() {
            execution.abandon(id);
        }
    }

    /// The end of a run is asked for.
    pub fn cancel(&self, id: &str) {
        if let Some(live) = self.execution().and_then(|execution| execution.live.get(id)) {
            live.cancel();
        }
    }

    /// Another node went on with a run.
    pub fn changed(&self, id: &str) {
        if let Some(execution) = self.execution() {
            execution.cluster.changed(id);
        }
    }

    fn is_granted(&self, id: &str, number: u64) -> bool {
        self.granted().0.get(id) == Some(&number)
    }

    /// Whether the grant still stands; it is used up.
    fn use_up(&self, id: &str, number: u64) -> bool {
        let mut granted = self.granted();
        let stands = granted.0.get(id) == Some(&number);
        if stands {
            granted.0.remove(id);
        }
        stands
    }
}

impl Execution {
    /// Executes the runs whose leases this node gets, and no others, on a thread of its own.
    /// Replaces [`Execution::resume`].
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn follow_leases(
        self: &Arc<Self>,
        leases: Arc<Leases>,
        cluster: Arc<dyn Cluster>,
    ) -> Result<(), RunError> {
        self.cluster.share(cluster, self.app().settings().server.queue_max);
        drop(leases.execution.set(Arc::downgrade(self)));
        let starts = leases.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (execution, system) = (Arc::clone(self), actix::System::current());
        let follow = move || {
            // Agents are actors.
            actix::System::set_current(system);
            for (id, number) in starts.into_iter().flatten() {
                execution.start_leased(&leases, &id, number);
            }
        };
        let thread = std::thread::Builder::new().name("leases".to_owned()).spawn(follow);
        thread
            .map(drop)
            .map_err(|error| RunError::Unreadable(format!("no thread for leases: {error}")))
    }

    /// Nothing of the run is executed unless the lease was held from before its row was read until
    /// it was registered; from then on, a loss abandons it.
    fn start_leased(self: &Arc<Self>, leases: &Leases, id: &str, number: u64) {
        if self.live.is_draining() || !leases.is_granted(id, number) {
            return;
        }
        // Of an earlier lease, whose loss came between its commit and its registration.
        self.abandon(id);
        // What this node wrote of the run under an earlier lease is in its row then, or never will
        // be.
        self.store.settle();
        let row = match self.store.journal().run(id) {
            Ok(Some(row)) if !row.is_over => row,
            Ok(Some(_)) => return,
            Ok(None) => {
                return tracing::error!(
                    run = id,
                    "a run whose lease this node got is not in the journal"
                );
            }
            Err(error) => {
                return tracing::error!(run = id, %error, "a run whose lease this node got cannot be read");
            }
        };
        let Some((live, row, slot)) = self.register(row) else { return };
        if leases.use_up(id, number) {
            tracing::info!(run = id, events = row.head.seq, "this node executes the run now");
            self.resume_run(&live, &row, slot);
        } else {
            live.stream.abandon();
            self.live.forget(&live);
        }
    }

    fn abandon(&self, id: &str) {
        let Some(live) = self.live.get(id) else { return };
        // Its end may be committed, and the answer on its way.
        if !live.stream.committed().is_over {
            tracing::warn!(
                run = id,
                "the lease of this run is lost: this node executes it no longer"
            );
        }
        live.stream.abandon();
        self.live.forget(&live);
        live.cancel();
    }
}
