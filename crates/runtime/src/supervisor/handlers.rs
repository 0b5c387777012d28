//! What the Supervisor does with each message.

use actix::{Context, Handler};
use tokio::time::Instant;

use super::approvals::step_of;
use super::{MISHAPS_MAX, SPARE_MAX, Supervisor};
use crate::messages::{
    Approve, Decided, Died, End, Halt, KeepAgents, Release, ReplaceThread, Submit,
};
use crate::observer::Event;
use crate::restart_limit::RestartLog;
use crate::run_table::last_failure;
use crate::turn::{Returned, Turn, TurnBody};
use crate::turn_timing::Stage;
use prime_protocol::{Decision, Ending, Role, TurnOutcome};
use prime_roles::{Failure, Proposal};

impl Handler<Submit> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Submit, ctx: &mut Context<Self>) {
        self.waiting.push_back((message.run, message.fanout));
        self.exclusively(ctx, Self::admit);
    }
}

impl Handler<End> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: End, ctx: &mut Context<Self>) {
        let End { run, ending } = message;
        self.exclusively(ctx, |this, ctx| {
            // A queued run begins first: only a live run can be stopped with its events and its
            // outcome.
            if let Some(at) = this.waiting.iter().position(|(waiting, _)| *waiting == run) {
                this.waiting.remove(at);
                this.begin(run, ctx);
            }

            this.stop(run, ending, ctx);
        });
    }
}

impl Handler<Approve> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Approve, ctx: &mut Context<Self>) {
        let Approve(run, resolution) = message;
        self.exclusively(ctx, |this, ctx| this.resolve(run, *resolution, ctx));
    }
}

impl Handler<Release> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Release, ctx: &mut Context<Self>) {
        let run = message.0;
        self.exclusively(ctx, |this, ctx| {
            this.guarded(run, ctx, |this, _| {
                // A turn in flight may have been the last one that a snapshot waited for.
                this.release(run);
                this.snapshot_if_gathered(run);
            });
        });
    }
}

impl Handler<Decided> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Decided, ctx: &mut Context<Self>) {
        let mut turns = message.0;
        let cell = self.cell;
        // One reading for the whole batch.
        let now_ms = *self.now_ms.get_or_insert_with(|| cell.now_ms());
        let yields = self.budget.spend(turns.len(), ctx);

        self.exclusively(ctx, |this, ctx| {
            for turn in turns.drain(..) {
                this.settle(turn, now_ms, ctx);
            }
        });

        if let Some(ring) = &mut self.ring {
            ring.recycle(turns);
        }
        if yields {
            // The mailbox may not become empty for long: the proposals so far go out before the
            // pause.
            self.now_ms = None;
            self.flush_proposals();
        }
    }
}

impl Supervisor {
    /// Hands a decided turn to its run.
    fn settle(&mut self, turn: Turn, now_ms: u64, ctx: &mut Context<Self>) {
        let mut body = turn.land();
        body.end_stage(Stage::Home);
        if self.has_gates {
            let Some(free) = self.unless_held(body, now_ms, ctx) else { return };
            body = free;
        }
        self.settle_decided(body, now_ms, ctx);
    }

    /// Hands a turn to its run whose step need not wait for approval.
    #[inline]
    pub(super) fn settle_decided(
        &mut self,
        mut body: Box<TurnBody>,
        now_ms: u64,
        ctx: &mut Context<Self>,
    ) {
        let (run, trajectory) = (body.run, body.take_trajectory());

        let turn = &mut *body;
        self.with_run(run, ctx, |live, effects| {
            // A late turn of a round that is closed.
            if !live.run.wants(turn.id) {
                return;
            }

            live.last_failure = None;
            let elapsed_ms = live.elapsed_ms_at(now_ms);
            let decision = live.run.plan().strategy.ruling(turn.ruling.decision);
            // The early proposal was made for the state after this step, which is not reached.
            if decision != Decision::Proceed || !turn.is_applicable {
                turn.discard_speculation();
            }
            // `propose` takes it, if this settlement asks for the trajectory's next proposal.
            live.started_early = turn.speculation.take().map(|speculation| (turn.id, speculation));

            let usage = turn.usage();
            let step = step_of(turn, usage, trajectory.stack.depth(), decision, elapsed_ms);
            live.submission.observer.observe(&step);

            let Proposal { line, derivation, logprobs, .. } = &turn.proposal;
            let outcome = TurnOutcome {
                line,
                applicable: turn.is_applicable,
                verdict: &turn.verdict,
                decision,
                located: turn.ruling.located.as_deref(),
                exhausted: turn.proposal.is_exhausted,
                usage,
                derivation,
                logprobs,
                speculations: turn.speculations,
            };
            live.run.settle(turn.id, trajectory, outcome, elapsed_ms, effects);
        });

        if self.spare.len() < SPARE_MAX {
            body.clear();
            self.spare.push(body);
        }
    }
}

impl Handler<Returned> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Returned, ctx: &mut Context<Self>) {
        self.exclusively(ctx, |this, ctx| this.retry(message.0, ctx));
    }
}

impl Supervisor {
    /// Sends a returned turn again, or fails it if its last error is permanent or it has had too
    /// many.
    fn retry(&mut self, mut body: Box<TurnBody>, ctx: &mut Context<Self>) {
        let live = self.runs.get_mut(&body.run).filter(|live| live.run.wants(body.id));
        // The run or the round may be over, which may be why the turn returns.
        let Some(live) = live else { return };

        let error = body.last_error.as_ref();
        if let Some(error) = error {
            live.last_failure = Some(last_failure(body.stage, error));
        }

        // What was committed may be as wrong as what contradicts it.
        if let Some(error) = error.filter(|error| error.failure == Failure::Inconsistent) {
            let ending = Ending::AgentFailed(error.to_string());
            return self.end_without_answer(body.run, ending, ctx);
        }

        // Trying again would not help, or has not helped.
        if error.is_some_and(|error| !error.is_transient) || body.mishaps >= MISHAPS_MAX {
            let reason = error.map_or_else(String::new, ToString::to_string);
            let failure = error.map_or(Failure::Panicked, |error| error.failure);
            self.with_run(body.run, ctx, |live, effects| {
                let (id, elapsed_ms, role) = (body.id, live.elapsed_ms(), body.stage);
                let usage = body.usage();
                let reason_of = reason.as_str();
                let failed =
                    Event::TurnFailed { id, elapsed_ms, role, failure, reason: reason_of, usage };
                live.submission.observer.observe(&failed);
                live.run.fail(id, body.take_trajectory(), (reason, usage), elapsed_ms, effects);
            });
            return;
        }

        // A turn that was lost in a mailbox, before any agent saw it, has nothing to report.
        if let Some(error) = error.filter(|_| body.mishaps > body.mishaps_reported) {
            let (id, elapsed_ms) = (body.id, self.elapsed_ms(body.run));
            let mishap =
                Event::Mishap { id, elapsed_ms, role: body.stage, error, mishaps: body.mishaps };
            self.observe(body.run, &mishap);
            body.mishaps_reported = body.mishaps;
        }

        self.send(body);
    }
}

impl Handler<Died> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Died, ctx: &mut Context<Self>) {
        let Died { role, generation, agents, reason } = message;
        // An earlier actor of the role, which was replaced when its thread hung, is no loss.
        let Some(ring) = self.ring.as_mut().filter(|ring| ring.generation(role) == generation)
        else {
            return;
        };

        // First, so that the turns sent below find the new actor.
        ring.replace(role, &self.plan);
        // An actor that died between turns was at work for nobody: its death counts against the
        // default set.
        let set = agents.unwrap_or(self.plan.kept);
        let mut parked = std::mem::take(&mut self.parked[role as usize]);

        let limit = self.plan.runtime.restart_limit;
        let restarts =
            self.restarts.entry(set).or_insert_with(|| Role::ALL.map(|_| RestartLog::new(limit)));
        if restarts[role as usize].allows(Instant::now()) {
            tracing::warn!(%role, %reason, "agent replaced");
        } else {
            // Their runs end now, so that there is nothing to send.
            parked.retain(|body| body.agents != set);
            self.exclusively(ctx, |this, ctx| this.give_up(role, set, &reason, ctx));
        }

        for body in parked {
            self.send(body);
        }
    }
}

impl Handler<KeepAgents> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: KeepAgents, _: &mut Context<Self>) {
        let old = std::mem::replace(&mut self.plan.kept, message.0);
        self.drop_unused(old);
    }
}

impl Handler<ReplaceThread> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: ReplaceThread, _: &mut Context<Self>) {
        let ReplaceThread { role, thread } = message;

        // Kept in the plan as well: a later replacement after a death starts on the same thread.
        self.plan.threads[role as usize] = thread;
        if let Some(ring) = &mut self.ring {
            ring.replace(role, &self.plan);
        }
    }
}

impl Handler<Halt> for Supervisor {
    type Result = ();
    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        self.exclusively(ctx, |this, ctx| {
            // A run that ends makes room for one that waits, which then ends too.
            while let Some(run) = this.runs.keys().next().copied() {
                this.stop(run, Ending::Cancelled, ctx);
            }
        });
    }
}
