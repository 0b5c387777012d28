//! What a run waits for before it is executed, and the time at which it has to end.

use std::future::pending;
use std::sync::Arc;
use std::task::Poll;

use futures::poll;

use super::Execution;
use super::rows::open_row;
use crate::runs::live::live_run::LiveRun;
use crate::runs::queue::places::{Place, Wanted};
use crate::runs::queue::wall_clock::until;
use crate::runs::record::{Status, timestamp};
use prime_agent_set::AgentSet;
use prime_protocol::{Ending, Outcome};

impl Execution {
    /// Waits until a run may begin: for its time, its agents, and its place among those that are
    /// executed. `None` if it is cancelled first.
    pub(super) async fn turn_of(
        &self,
        live: &Arc<LiveRun>,
        has_begun: bool,
    ) -> Option<(Arc<AgentSet>, Place)> {
        if let Some(not_before_ms) = live.spec.queueing.not_before_ms.filter(|_| !has_begun) {
            tokio::select! {
                biased;
                () = live.cancelled() => return None,
                () = until(self.store.clock(), not_before_ms) => {}
            }
        }

        // A run keeps its agents while it waits, but not the configuration that they come from.
        let (_, agents) = self.agents_of(live).await?;
        let mut place = self.places.enter(self.wanted(live, has_begun));
        if let Poll::Ready(place) = poll!(&mut place) {
            return Some((agents, place));
        }
        if has_begun {
            live.set_queued(true);
            // Nothing waits for the row, which other nodes and lists read.
            drop(live.stream.update(open_row(live, Status::Queued, self.store.now_ms())));
        }
        let place = tokio::select! {
            biased;
            () = live.cancelled() => None,
            place = place => Some(place),
        };
        live.set_queued(false);
        Some((agents, place?))
    }

    fn wanted(&self, live: &LiveRun, has_begun: bool) -> Wanted {
        let queueing = &live.spec.queueing;
        let since_ms = live.created_ms.max(queueing.not_before_ms.unwrap_or_default());
        Wanted {
            owner: live.owner.clone(),
            task: live.spec.task.clone(),
            turns: live.spec.plan.fanout,
            priority: queueing.priority,
            waited_ms: self.store.now_ms().saturating_sub(since_ms),
            has_begun,
        }
    }

    /// Resolves when the run's deadline has passed; never if it has none.
    pub(super) async fn deadline_of(&self, live: &LiveRun) {
        match live.spec.queueing.deadline_ms {
            Some(deadline_ms) => until(self.store.clock(), deadline_ms).await,
            None => pending().await,
        }
    }
}

/// Says of a run that its deadline ended before it had proposed anything that it did not begin.
pub fn name_late_begin(outcome: Outcome, live: &LiveRun) -> Outcome {
    let is_late = outcome.ending == Ending::DeadlinePassed
        && outcome.last_failure.is_none()
        && live.stream.uncommitted_progress().proposals == 0;
    let Some(deadline_ms) = live.spec.queueing.deadline_ms.filter(|_| is_late) else {
        return outcome;
    };
    let text = format!(
        "its deadline, {}, passed before it began; it was accepted at {}: name a later deadline or \
         a higher priority",
        timestamp(deadline_ms),
        timestamp(live.created_ms)
    );
    Outcome { last_failure: Some(text), ..outcome }
}
