//! Requests for proposals, and what holds them back: a slow observer, a snapshot.

use tokio::sync::watch;

use super::live::{Hold, Waiting};
use super::{CROWD, STINT, Supervisor};
use crate::messages::Release;
use crate::speculation::Lookahead;
use crate::submission::{RunId, Submission};
use crate::turn::{Turn, TurnBody};
use crate::turn_timing::StageTimes;
use prime_protocol::{Role, RunSnapshot};

impl Supervisor {
    pub(super) fn propose(&mut self, run: RunId, mut waiting: Waiting) {
        let (Some(live), Some(links)) = (self.runs.get_mut(&run), &self.links) else { return };

        if let Some((_, speculation)) = live.started_early.take_if(|(of, _)| *of == waiting.id) {
            waiting.speculation = Some(speculation);
        }

        let observer = &live.submission.observer;
        // Only while the run is whole: a snapshot stores neither gathered samples nor turns that are
        // parked or wait for approval.
        let is_whole = live.run.is_whole() && live.approvals.is_empty();
        if live.hold.is_none() && is_whole && observer.wants_snapshot() {
            live.hold = Some(Hold::Snapshot);
            self.takes_snapshots = true;
        }

        if live.hold.is_none() && observer.is_behind() {
            live.hold = Some(Hold::Behind);
            live.held.push(waiting);
            let release = links.release.clone();
            return observer.wake_when_free(Box::new(move || release.do_send(Release(run))));
        }

        if live.hold.is_some() {
            return live.held.push(waiting);
        }

        let Waiting { id, mut trajectory, speculation } = waiting;
        trajectory.locator_budget = live.run.locator_budget();
        let Submission { plan, sampling: run_sampling, .. } = &live.submission;
        let sampling = run_sampling.of_turn(&plan.strategy, plan.fanout, id, &trajectory);

        let lookahead =
            live.round.as_ref().and_then(|round| Lookahead::of(&live.run, *run_sampling, round));
        let timing = observer.wants_timing().then(|| Box::new(StageTimes::start()));
        let (span, of) = (live.span.clone(), (run, live.agents));
        // Deferred only at the start of a stint: within one, the state is still in the caches.
        let is_deferrable =
            self.in_flight > CROWD && trajectory.counts.proposals.is_multiple_of(STINT);

        let mut body = match self.spare.pop() {
            Some(mut body) => {
                body.reuse(of, id, trajectory, sampling);
                body
            }
            None => Box::new(TurnBody::new(links.returned.clone(), of, id, trajectory, sampling)),
        };

        body.is_deferrable = is_deferrable;
        body.span = span;
        (body.lookahead, body.speculation, body.timing) = (lookahead, speculation, timing);
        self.send(body);
    }

    /// Sends a turn to the agent whose work it needs.
    pub(super) fn send(&mut self, body: Box<TurnBody>) {
        let role: Role = body.stage;
        let ring =
            self.ring.as_mut().expect("invariant: the ring exists once the actor has started");
        if ring.is_connected(role) {
            ring.send(role, Turn::new(body));
        } else {
            self.parked[role as usize].push(body);
        }
    }

    pub(super) fn flush_proposals(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.flush();
        }
    }

    /// Ends the work on the round's turns in flight, and cancels its early proposals.
    pub(super) fn close_round(&mut self, run: RunId, round: u32) {
        self.plan.table.close_round(run, round);
        if let Some(live) = self.runs.get_mut(&run) {
            live.started_early = None;
            // The old sender is dropped, which every early proposal of the round notices.
            live.round = live.round.is_some().then(|| watch::Sender::new(()));
        }
    }

    /// Takes the snapshot once all live turns of the run are held, and lets them continue.
    #[inline]
    pub(super) fn snapshot_if_gathered(&mut self, run: RunId) {
        if self.takes_snapshots {
            self.take_snapshot_if_gathered(run);
        }
    }

    fn take_snapshot_if_gathered(&mut self, run: RunId) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        if live.hold != Some(Hold::Snapshot) {
            return;
        }
        // The round may have been closed meanwhile: its turns are stale.
        live.held.retain(|held| live.run.wants(held.id));

        live.approvals.retain(|held| live.run.wants(held.body.id));

        if live.held.len() + live.approvals.len() == live.run.live() as usize {
            if !live.approvals.is_empty() {
                return self.release(run);
            }
            let waiting = live.held.iter().map(|held| (held.id, held.trajectory.as_ref()));
            live.submission.observer.save_snapshot(RunSnapshot::of(
                &live.run,
                waiting,
                live.elapsed_ms(),
            ));
            self.release(run);
        }
    }

    pub(super) fn release(&mut self, run: RunId) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        live.hold = None;
        // Taken out first: the observer may fall behind again, and `propose` then refills the list.
        for waiting in std::mem::take(&mut live.held) {
            self.propose(run, waiting);
        }
    }
}
