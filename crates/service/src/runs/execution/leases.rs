//! Runs of a journal that several nodes share: those whose lease this node gets or loses.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::Execution;
use super::resume::wait;
use crate::runs::error::RunError;
use prime_journal::Cluster;

/// Leases that this node got and has not used or lost since.
#[derive(Default)]
struct Granted {
    /// The number of the grant, by run: a run may be lost and granted again.
    runs: HashMap<String, u64>,
    /// The number of the last grant.
    last: u64,
}

/// What the journal says about this node's leases, in its order. The methods do not block.
pub struct Leases {
    granted: Mutex<Granted>,
    /// Runs to start, each with the number of its grant, for the thread that starts them.
    starts: Sender<(String, u64)>,
    /// The other end of `starts`, until that thread takes it.
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
    fn granted(&self) -> MutexGuard<'_, Granted> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn execution(&self) -> Option<Arc<Execution>> {
        self.execution.get().and_then(Weak::upgrade)
    }

    /// Which of these needs of runs this node meets at present; none before it executes runs.
    pub fn needs_met(&self, asked: &[String]) -> Vec<String> {
        self.execution().map(|execution| execution.app().needs_met(asked)).unwrap_or_default()
    }

    /// Notes that the node got the lease of a run, which starts soon.
    pub fn start(&self, id: String) {
        let mut granted = self.granted();
        granted.last += 1;
        let number = granted.last;
        granted.runs.insert(id.clone(), number);
        drop(granted);
        // The receiver is gone only if the process ends.
        drop(self.starts.send((id, number)));
    }

    /// Notes that the lease is lost. After this, nothing that the run did under it is written.
    pub fn stop(&self, id: &str) {
        self.granted().runs.remove(id);
        if let Some(execution) = self.execution() {
            execution.abandon(id);
        }
    }

    /// Cancels a run, as a client asked.
    pub fn cancel(&self, id: &str) {
        if let Some(live) = self.execution().and_then(|execution| execution.live.get(id)) {
            live.cancel();
        }
    }

    /// Notes that another node executed a part of a run.
    pub fn changed(&self, id: &str) {
        if let Some(execution) = self.execution() {
            execution.cluster.changed(id);
        }
    }

    fn is_granted(&self, id: &str, number: u64) -> bool {
        self.granted().runs.get(id) == Some(&number)
    }

    /// Uses up a grant. Returns whether it still stood.
    fn use_up(&self, id: &str, number: u64) -> bool {
        let mut granted = self.granted();
        let stands = granted.runs.get(id) == Some(&number);
        if stands {
            granted.runs.remove(id);
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
        // Weak, because the store holds the leases and would keep everything alive.
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

    /// Starts a run whose lease this node got. The run is executed only if the lease was held from
    /// before its row was read until it was registered; from then on, a loss abandons it.
    fn start_leased(self: &Arc<Self>, leases: &Leases, id: &str, number: u64) {
        // It was lost, or granted anew, since it was queued: the newer grant is queued as well.
        if self.live.is_draining() || !leases.is_granted(id, number) {
            return;
        }
        // This removes what is left of an earlier lease, which was lost between the commit and the
        // registration.
        self.abandon(id);

        // After this, the run's row has all that it will ever get from earlier leases of this node.
        self.store.settle();

        let mut pauses = 0;
        let read = loop {
            match self.store.journal().run(id) {
                // No other node executes it meanwhile.
                Err(error) if error.is_passing() => {
                    if self.live.is_draining() || !leases.is_granted(id, number) {
                        return;
                    }
                    tracing::warn!(run = id, %error, "a run waits until its row can be read");
                    wait(&mut pauses);
                }
                read => break read,
            }
        };

        let row = match read {
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
            // Lost between the row and the registration, so that `stop` did not find the run.
            live.stream.abandon();
            self.live.forget(&live);
        }
    }

    /// Ends the execution of a run here, without a result.
    fn abandon(&self, id: &str) {
        let Some(live) = self.live.get(id) else { return };
        // Its end may be committed, with the answer still on its way.
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
