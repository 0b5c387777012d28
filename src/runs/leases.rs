//! Runs of a journal that several nodes share: those whose lease this node gets or loses.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::live_run::LiveRun;
use super::service::{RunError, Runs};
use prime_journal::lease::Effect;

impl Runs {
    /// Executes the runs whose leases this node holds, and no others, on a thread of its own. Replaces [`Runs::resume`].
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn follow_leases(self: &Arc<Self>, effects: Receiver<Effect<String>>) -> Result<(), RunError> {
        self.set_shared();
        let (runs, system) = (Arc::clone(self), actix::System::current());
        let follow = move || {
            // Agents are actors.
            actix::System::set_current(system);
            for effect in effects {
                match effect {
                    Effect::Start(id) => runs.start_leased(&id),
                    Effect::Stop(id) => runs.stop_leased(&id),
                }
            }
        };
        let thread = std::thread::Builder::new().name("leases".to_owned()).spawn(follow);
        thread.map(drop).map_err(|error| RunError::Unreadable(format!("no thread for leases: {error}")))
    }

    fn start_leased(self: &Arc<Self>, id: &str) {
        if self.is_draining() {
            return;
        }
        // What this node wrote of the run under an earlier lease is in its row then, or never will be.
        self.writer.settle();
        match self.journal.run(id) {
            Ok(Some(row)) if row.is_over => {}
            Ok(Some(row)) => {
                tracing::info!(run = id, events = row.head.seq, "this node executes the run now");
                if let Some((live, row, slot)) = self.register(row) {
                    self.resume_run(&live, &row, slot);
                }
            }
            Ok(None) => tracing::error!(run = id, "a run whose lease this node got is not in the journal"),
            Err(error) => tracing::error!(run = id, %error, "a run whose lease this node got cannot be read"),
        }
    }

    fn stop_leased(&self, id: &str) {
        let Some(live) = self.live(id) else { return };
        tracing::warn!(run = id, "the lease of this run is lost: this node executes it no longer");
        live.stream.abandon();
        self.forget(&live);
        live.cancel();
    }

    /// Removes the run from those in memory, unless it was taken again since.
    pub(super) fn forget(&self, live: &Arc<LiveRun>) {
        self.live.remove_if(&live.stream.id, |_, known| Arc::ptr_eq(known, live));
    }
}
