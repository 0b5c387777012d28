//! What the owner of a run keeps: waiting for its end, cancelling it.

use std::sync::Weak;

use tokio::sync::oneshot;

use super::cells::Cells;
use super::submission::RunId;
use prime_protocol::{Ending, Outcome, Resolution};

/// A submitted run. Dropping the handle does not end the run.
pub struct RunHandle {
    canceller: Canceller,
    outcome: oneshot::Receiver<Outcome>,
}

/// Reaches a run from anywhere.
#[derive(Clone)]
pub struct Canceller {
    run: RunId,
    cells: Weak<Cells>,
}

impl Canceller {
    /// Asks the run to end with the best answer so far; its outcome still arrives.
    pub fn cancel(&self) {
        self.end(Ending::Cancelled);
    }

    /// Like [`Canceller::cancel`], for another reason than that its owner cancelled it.
    pub fn end(&self, ending: Ending) {
        if let Some(cells) = self.cells.upgrade() {
            cells.end(self.run, ending);
        }
    }

    /// Tells the run what was decided about one of its steps. Nothing happens unless that step
    /// waits for approval there.
    pub fn approve(&self, resolution: Resolution) {
        if let Some(cells) = self.cells.upgrade() {
            cells.approve(self.run, resolution);
        }
    }
}

impl RunHandle {
    pub(super) fn new(run: RunId, cells: Weak<Cells>, outcome: oneshot::Receiver<Outcome>) -> Self {
        Self { canceller: Canceller { run, cells }, outcome }
    }

    /// Asks the run to end with the best answer so far; its outcome still arrives.
    pub fn cancel(&self) {
        self.canceller.cancel();
    }

    /// A handle that can only cancel the run.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the run's end; `None` if the runtime was dropped first, or all trajectories wait for
    /// approval ([`Observer::suspended`](crate::Observer::suspended)).
    pub async fn outcome(&mut self) -> Option<Outcome> {
        (&mut self.outcome).await.ok()
    }
}
