//! What the Supervisor does with each message.

use actix::{AsyncContext, Context, Handler};
use tokio::time::Instant;

use super::{MISHAPS_MAX, SPARE_MAX, Supervisor};
use crate::agents::{Failure, Proposal};
use crate::runtime::messages::{Cancel, Decided, Died, Halt, Release, Returned, Submit};
use crate::runtime::observer::Event;
use crate::runtime::turn::Turn;
use crate::runtime::turn_timing::Stage;
use prime_protocol::{Decision, Ending, TurnOutcome};

impl Handler<Submit> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Submit, ctx: &mut Context<Self>) {
        self.waiting.push_back(message.0);
        self.admit(ctx);
    }
}

impl Handler<Cancel> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Cancel, ctx: &mut Context<Self>) {
        if let Some(at) = self.waiting.iter().position(|submitted| submitted.id == message.0) {
            let submitted = *self.waiting.remove(at).expect("invariant: it was just found");
            self.in_flight += submitted.submission.plan.fanout;
            self.begin(submitted, ctx);
        }
        self.stop(message.0, Ending::Cancelled, ctx);
    }
}

impl Handler<Release> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Release, ctx: &mut Context<Self>) {
        self.guarded(message.0, ctx, |this, _| {
            this.release(message.0);
            this.save_if_gathered(message.0);
        });
    }
}

impl Handler<Decided> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Decided, ctx: &mut Context<Self>) {
        let mut turns = message.0;
        let now = *self.clock.get_or_insert_with(Instant::now);
        let is_full = self.batch.count(turns.len(), ctx);
        for turn in turns.drain(..) {
            self.settle(turn, now, ctx);
        }
        self.out.give(turns);
        if is_full {
            self.clock = None;
            self.send_proposals();
        }
    }
}

impl Supervisor {
    /// Carries out what was decided.
    fn settle(&mut self, turn: Turn, now: Instant, ctx: &mut Context<Self>) {
        let mut body = turn.land();
        body.end(Stage::Home);
        let (run, trajectory) = (body.run, body.take_trajectory());
        let turn = &mut *body;
        self.with_run(run, ctx, |live, effects| {
            if !live.run.wants(turn.id) {
                return;
            }
            let elapsed_ms = live.elapsed_ms_at(now);
            let decision = live.run.plan().strategy.ruling(turn.ruling.decision);
            if decision != Decision::Proceed || !turn.is_applicable {
                turn.give_up_speculation();
            }
            live.begun = turn.speculation.take().map(|speculation| (turn.id, speculation));
            let usage = turn.usage();
            let Proposal { line, derivation, logprobs, .. } = &turn.proposal;
            let (logprob, characters) = TurnOutcome::measure(line, derivation, logprobs);
            live.submission.observer.observe(&Event::Step {
                id: turn.id,
                elapsed_ms,
                depth: trajectory.stack.depth(),
                proposal: &turn.proposal,
                is_applicable: turn.is_applicable,
                verdict: &turn.verdict,
                decision,
                usage,
                speculations: turn.speculations,
                laps: turn.laps.as_deref(),
            });
            let settled = TurnOutcome {
                line,
                applicable: turn.is_applicable,
                verdict: &turn.verdict,
                decision,
                usage,
                logprob,
                characters,
                speculations: turn.speculations,
            };
            live.run.settle(turn.id, trajectory, settled, elapsed_ms, effects);
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
        let mut body = message.0;
        let is_final = body.last_error.as_ref().is_some_and(|error| !error.is_transient);
        if self.runs.get(&body.run).is_none_or(|live| !live.run.wants(body.id)) {
            return;
        }
        if is_final || body.mishaps >= MISHAPS_MAX {
            let reason = body.last_error.as_ref().map_or_else(String::new, ToString::to_string);
            let failure = body.last_error.as_ref().map_or(Failure::Panicked, |error| error.failure);
            self.with_run(body.run, ctx, |live, effects| {
                let (id, elapsed_ms, role) = (body.id, live.elapsed_ms(), body.stage);
                let failed = Event::TurnFailed { id, elapsed_ms, role, failure, reason: &reason };
                live.submission.observer.observe(&failed);
                live.run.fail(body.id, body.take_trajectory(), reason, elapsed_ms, effects);
            });
        } else {
            if let Some(error) = body.last_error.as_ref().filter(|_| body.mishaps > body.mishaps_told) {
                let (id, elapsed_ms) = (body.id, self.elapsed_ms(body.run));
                let mishap = Event::Mishap { id, elapsed_ms, role: body.stage, error, mishaps: body.mishaps };
                self.observe(body.run, &mishap);
                body.mishaps_told = body.mishaps;
            }
            self.send(body);
        }
    }
}

impl Handler<Died> for Supervisor {
    type Result = ();
    fn handle(&mut self, message: Died, ctx: &mut Context<Self>) {
        let Died { role, generation, reason } = message;
        let Some(ring) = self.ring.as_mut().filter(|ring| ring.generation(role) == generation) else { return };
        ring.replace(role, &self.plan, &ctx.address());
        if self.restarts[role as usize].allows(self.plan.restart_limit, Instant::now()) {
            tracing::warn!(%role, %reason, "agent replaced");
            for body in std::mem::take(&mut self.parked[role as usize]) {
                self.send(body);
            }
        } else {
            self.parked[role as usize].clear();
            self.give_up(role, &reason, ctx);
        }
    }
}

impl Handler<Halt> for Supervisor {
    type Result = ();
    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        // A run that ends makes room for one that waits, which then ends too.
        while let Some(run) = self.runs.keys().next().copied() {
            self.stop(run, Ending::Cancelled, ctx);
        }
    }
}
