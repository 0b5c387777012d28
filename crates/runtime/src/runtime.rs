//! The runtime as the rest of the program sees it.

use std::sync::Arc;

use super::cell::RuntimePlan;
use super::cells::{Cells, Hangs};
use super::run_handle::RunHandle;
use super::submission::Submission;
use super::watchdog::Watchdog;
use prime_roles::Agents;

/// The cells of a process, within an actix system.
pub struct Runtime {
    pub(super) cells: Arc<Cells>,
    watchdog: Option<Watchdog>,
}

impl Runtime {
    /// Starts the cells. Must be called within an actix system.
    pub fn start(plan: &RuntimePlan, agents: Arc<dyn Agents>) -> Self {
        let cells = Arc::new(Cells::start(plan, agents));
        // Runs do not depend on the watchdog: without one they start all the same.
        let watchdog = plan.hang_after.and_then(|limit| {
            let started = Watchdog::start(Arc::downgrade(&cells), limit);
            started
                .inspect_err(|error| tracing::error!(%error, "hanging agents cannot be found"))
                .ok()
        });

        Self { cells, watchdog }
    }

    /// The plan that the runtime was started with.
    pub fn plan(&self) -> &RuntimePlan {
        self.cells.plan()
    }

    /// The default agents.
    pub fn agents(&self) -> Arc<dyn Agents> {
        self.cells.agents()
    }

    /// Replaces the default agents for runs that are submitted from now on. The old ones are
    /// dropped with their last run.
    pub fn replace_agents(&self, agents: Arc<dyn Agents>) {
        self.cells.replace_agents(agents);
    }

    /// Submitted runs that have not ended.
    pub fn load(&self) -> usize {
        self.cells.load()
    }

    /// Agents that block their thread.
    pub fn hangs(&self) -> Hangs {
        self.cells.hangs()
    }

    /// Submits a run with the default agents.
    pub fn submit(&self, submission: Submission) -> RunHandle {
        self.submit_with(self.agents(), submission)
    }

    /// Submits a run with these agents to the cell with the fewest runs. Never refuses: admission
    /// is up to the caller. A cell makes its own agents of a set at the set's first turn and drops
    /// them after the set's last run.
    pub fn submit_with(&self, agents: Arc<dyn Agents>, submission: Submission) -> RunHandle {
        let (run, outcome) = self.cells.submit(submission, agents);
        RunHandle::new(run, Arc::downgrade(&self.cells), outcome)
    }

    /// Ends all runs with the best answer so far.
    pub fn halt(&self) {
        self.cells.halt();
        // It ends the runs of cells whose Supervisor is blocked, and would otherwise sleep on.
        if let Some(watchdog) = &self.watchdog {
            watchdog.wake();
        }
    }

    /// Stops the cells' threads and joins them, so that what they held is freed. An agent that
    /// blocks its thread, and has not been found yet, delays this.
    pub fn close(self) {
        self.cells.close();
    }
}

impl Drop for Runtime {
    /// Stops the cells' threads. A caller that waits for a run must keep the runtime.
    fn drop(&mut self) {
        self.cells.stop();
    }
}
