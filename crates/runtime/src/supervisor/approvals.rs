//! Steps that wait for approval: what holds them, what a decision makes of them, and the end of a
//! run's stay in the cell when nothing else is left to do.

use std::sync::Arc;

use actix::{Context, Recipient};

use super::Supervisor;
use crate::observer::Event;
use crate::submission::{RunId, Submission};
use crate::turn::{Returned, TurnBody};
use prime_protocol::{
    ApprovalVerdict, Decision, Ending, HeldStep, Resolution, Role, Score, Trajectory, TurnId,
    Usage, Verdict,
};
use prime_roles::{AgentSetId, Proposal, Sampling};

/// A step that waits for approval. Its turn has been decided and is with the Supervisor.
pub struct Held {
    pub number: u32,
    pub body: Box<TurnBody>,
}

/// The step of a decided turn with this usage, as observers see it.
#[inline]
pub(super) fn step_of(
    turn: &TurnBody,
    usage: Usage,
    depth: usize,
    decision: Decision,
    elapsed_ms: u64,
) -> Event<'_> {
    Event::Step {
        id: turn.id,
        elapsed_ms,
        depth,
        proposal: &turn.proposal,
        is_applicable: turn.is_applicable,
        verdict: &turn.verdict,
        decision,
        located: turn.ruling.located.as_deref(),
        approval: turn.approval.as_deref(),
        usage,
        speculations: turn.speculations,
        waited: turn.waited,
        timing: turn.timing.as_deref(),
    }
}

/// The verdict on a line that a reviewer rejects.
fn rejected(verdict: Verdict, reason: &str) -> Verdict {
    let mut feedback = "a reviewer rejected this line".to_owned();
    if !reason.is_empty() {
        feedback = format!("{feedback}: {reason}");
    }
    // As bad as a line that the runtime itself rejects.
    let score = verdict.score.max(Score::from_tenths(10));
    Verdict { score, feedback: Some(feedback), ..verdict }
}

impl TurnBody {
    /// The turn of a step that an earlier process held.
    pub(super) fn of_held(
        supervisor: Recipient<Returned>,
        of: (RunId, AgentSetId),
        step: HeldStep,
        sampling: impl FnOnce(TurnId, &Trajectory) -> Sampling,
    ) -> Self {
        let sampling = sampling(step.id, &step.trajectory);
        let mut body = Self::new(supervisor, of, step.id, step.trajectory, sampling);
        body.proposal = Proposal {
            line: step.line,
            derivation: step.derivation,
            reasoning: step.reasoning,
            source: step.source.map(Into::into),
            tokens: step.tokens,
            logprobs: step.logprobs,
            ..Proposal::default()
        };
        body.verdict = step.verdict;
        body.wasted = step.usage;
        body
    }

    /// Puts a reviewer's line in the place of the proposal, to be judged. Returns the proposal's.
    /// The new line has its rank among others, because a person gives no probabilities.
    fn replace_line(&mut self, line: String) -> String {
        self.wasted = self.usage();
        (self.verdict, self.ruling) = (Verdict::default(), Decision::Proceed.into());
        self.stage = Role::Verifier;
        let logprobs = std::mem::take(&mut self.proposal.logprobs);
        let proposal = Proposal { line, logprobs, usage: Usage::default(), ..Proposal::default() };
        std::mem::replace(&mut self.proposal, proposal).line
    }
}

impl Supervisor {
    /// Holds a step that must be approved before it is committed. Returns any other.
    #[cold]
    pub(super) fn unless_held(
        &mut self,
        mut body: Box<TurnBody>,
        now_ms: u64,
        ctx: &mut Context<Self>,
    ) -> Option<Box<TurnBody>> {
        let run = body.run;
        let may_hold = self
            .runs
            .get_mut(&run)
            .filter(|live| live.may_hold && body.approval.is_none() && live.run.wants(body.id));
        let Some(live) = may_hold else { return Some(body) };

        let decision = live.run.plan().strategy.ruling(body.ruling.decision);
        if decision != Decision::Proceed || !body.is_applicable {
            return Some(body);
        }

        let (depth, elapsed_ms) = (body.trajectory.stack.depth(), live.elapsed_ms_at(now_ms));
        let observer = Arc::clone(&live.submission.observer);
        if !observer.holds(&step_of(&body, body.usage(), depth, decision, elapsed_ms)) {
            return Some(body);
        }

        // It may wait for days: nothing is computed on the expectation that it is accepted.
        body.discard_speculation();
        live.last_failure = None;
        live.holds += 1;
        let number = live.holds;
        let step = step_of(&body, body.usage(), depth, decision, elapsed_ms);
        observer.observe(&Event::Waiting { number, step: &step });
        live.approvals.push(Held { number, body });

        self.suspend_if_all_wait(run, ctx);
        None
    }

    /// Holds the steps again that an earlier process held. Returns those that were decided since.
    pub(super) fn hold_again(
        &mut self,
        run: RunId,
        steps: Vec<HeldStep>,
    ) -> Vec<(Box<TurnBody>, Resolution)> {
        let mut resolved = Vec::new();
        let (Some(live), Some(links)) = (self.runs.get_mut(&run), &self.links) else {
            return resolved;
        };

        let Submission { plan, sampling, .. } = &live.submission;
        for mut step in steps {
            let (number, resolution) = (step.number, step.resolution.take());
            let sampled = |id, trajectory: &Trajectory| {
                sampling.of_turn(&plan.strategy, plan.fanout, id, trajectory)
            };
            let of = (run, live.agents);
            let mut body = Box::new(TurnBody::of_held(links.returned.clone(), of, step, sampled));
            body.span.clone_from(&live.span);
            match resolution {
                Some(resolution) => resolved.push((body, resolution)),
                None => live.approvals.push(Held { number, body }),
            }
        }
        resolved
    }

    /// Drops a run of which every trajectory waits for approval. Its owner gets no outcome.
    pub(super) fn suspend_if_all_wait(&mut self, run: RunId, ctx: &mut Context<Self>) {
        let Some(live) = self.runs.get_mut(&run).filter(|live| !live.approvals.is_empty()) else {
            return;
        };
        // The round may have been closed meanwhile: its turns are stale.
        live.approvals.retain(|held| live.run.wants(held.body.id));

        let waiting = u32::try_from(live.approvals.len()).unwrap_or(u32::MAX);
        if waiting == 0 || waiting + live.run.parked() < live.run.live() {
            return;
        }

        live.submission.observer.suspended();
        self.forget(run);
        drop(self.plan.table.finish(run));
        self.admit(ctx);
    }

    /// Carries out a decision about a step, if that waits here.
    pub(super) fn resolve(&mut self, run: RunId, resolution: Resolution, ctx: &mut Context<Self>) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        let number = resolution.approval.number;
        if let Some(at) = live.approvals.iter().position(|held| held.number == number) {
            let Held { body, .. } = live.approvals.swap_remove(at);
            self.carry_on(body, resolution, ctx);
        }
    }

    /// Continues a turn with what was decided about its step.
    pub(super) fn carry_on(
        &mut self,
        mut body: Box<TurnBody>,
        resolution: Resolution,
        ctx: &mut Context<Self>,
    ) {
        let run = body.run;
        let Resolution { mut approval, line } = resolution;
        match (approval.verdict, line) {
            (ApprovalVerdict::End, _) => return self.stop(run, Ending::Cancelled, ctx),
            (ApprovalVerdict::Edit, Some(line)) => {
                approval.proposed = Some(body.replace_line(line));
            }
            (ApprovalVerdict::Reject, _) => {
                let verdict = std::mem::take(&mut body.verdict);
                body.verdict = rejected(verdict, &approval.reason);
                body.ruling.decision = Decision::Backtrack;
            }
            (ApprovalVerdict::Accept | ApprovalVerdict::Edit, _) => {}
        }
        let is_edited = approval.proposed.is_some();
        body.approval = Some(Box::new(approval));

        self.guarded(run, ctx, |this, ctx| {
            // A machine that was replayed holds no candidate.
            body.apply();
            if is_edited {
                this.send(body);
            } else {
                let now_ms = this.cell.now_ms();
                this.settle_decided(body, now_ms, ctx);
            }
        });
        self.flush_proposals();
    }
}
