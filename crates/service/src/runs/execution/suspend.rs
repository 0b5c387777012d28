//! Runs that wait for approval: what waits is written to the journal, a run that does nothing else
//! leaves the memory, and a decision brings it back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::Execution;
use super::rows::open_row;
use crate::runs::approvals::record::DecisionRow;
use crate::runs::live::admission::RunSlot;
use crate::runs::live::live_run::LiveRun;
use crate::runs::record::Status;
use prime_journal::ApprovalRow;

/// Pause before the journal is written again.
const AGAIN: Duration = Duration::from_secs(1);

impl Execution {
    /// Notified when steps have begun to wait.
    pub fn held(&self) -> &Notify {
        &self.held
    }

    /// Writes which steps of the run wait, once their events are durable. Returns false if the run
    /// is not executed here any more.
    pub(super) async fn write_waits(&self, live: &LiveRun) -> bool {
        loop {
            let (waiting, seq) = live.waits.list();
            if live.stream.durable(seq).await.is_err() {
                return false;
            }

            let (id, now_ms) = (live.stream.id.clone(), self.store.now_ms());
            let hold = move |journal: &dyn prime_journal::Journal| {
                journal.approvals().hold(&id, &waiting, now_ms)
            };
            match self.store.read(hold).await {
                Ok(()) => {
                    self.held.notify_one();
                    return true;
                }
                Err(error) if live.stream.is_abandoned() || self.live.is_draining() => {
                    tracing::debug!(%error, "the next process lists what waits");
                    return false;
                }
                Err(error) => {
                    tracing::warn!(run = %live.stream.id, %error, "what waits for approval cannot be listed yet");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Gives up a run all of whose trajectories wait, until one of their steps is decided.
    pub(super) async fn park(self: &Arc<Self>, live: &Arc<LiveRun>, slot: RunSlot) {
        if !self.write_waits(live).await {
            return;
        }
        live.set_parked();
        let row = open_row(live, Status::Waiting, self.store.now_ms());
        // Unwritten means that the process is ending, or that another node has the run.
        if live.stream.update(row).await.is_err() {
            return self.live.forget(live);
        }

        let (waiting, _) = live.waits.list();
        let numbers: Vec<u32> = waiting.iter().map(|approval| approval.number).collect();
        let is_parked = loop {
            let (id, numbers) = (live.stream.id.clone(), numbers.clone());
            let park =
                move |journal: &dyn prime_journal::Journal| journal.approvals().park(&id, &numbers);
            match self.store.read(park).await {
                Ok(is_parked) => break is_parked,
                // The next process, or the node that gets the lease, parks it.
                Err(_) if live.stream.is_abandoned() || self.live.is_draining() => return,
                Err(error) => {
                    tracing::warn!(run = %live.stream.id, %error, "a run that waits for approval stays in memory");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };

        tracing::info!(run = %live.stream.id, steps = numbers.len(), "the run waits for approval");
        // Readers and cancellations continue with the journal: they look there once the stream is
        // abandoned.
        self.live.forget(live);
        live.stream.abandon();
        drop(slot);
        if !is_parked {
            // A decision was faster.
            self.resume_parked(&live.stream.id);
        }
    }

    /// Executes a run again that waited for approval. Does not block.
    pub(in crate::runs) fn resume_parked(self: &Arc<Self>, id: &str) {
        let (execution, id) = (Arc::clone(self), id.to_owned());
        let resume = move || {
            if execution.live.is_draining() {
                return;
            }
            match execution.store.journal().run(&id) {
                Ok(Some(row)) if !row.is_over => {
                    if let Some((live, row, slot)) = execution.register(row) {
                        execution.resume_run(&live, &row, slot);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(run = id, %error, "a run that was approved cannot be read: the next process resumes it");
                }
            }
        };
        // The pool bounds the threads, however many are decided at once.
        drop(tokio::task::spawn_blocking(resume));
    }

    /// Tells a run what was decided about its steps, wherever it was decided.
    pub(super) async fn deliver(&self, live: &LiveRun) {
        if live.spec.approval.is_none() {
            return;
        }
        let id = live.stream.id.clone();
        let rows = self.store.read(move |journal| journal.approvals().of_run(&id)).await;
        for row in rows.unwrap_or_default() {
            if let Some(resolution) = resolution(&row) {
                live.approve(resolution);
            }
        }
    }

    /// Tells all runs of this node what other nodes have decided about their steps.
    pub(in crate::runs) async fn deliver_all(&self) {
        for live in self.live.waiting_for_approval() {
            self.deliver(&live).await;
        }
    }
}

/// The decision of a row, if there is one.
pub(super) fn resolution(row: &ApprovalRow) -> Option<prime_protocol::Resolution> {
    DecisionRow::of(row).map(|decision| decision.resolution(row.number))
}
