//! The life of a run in a cell: admission, effects, end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use actix::Context;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Supervisor;
use super::live::{Live, Waiting};
use crate::death_watch::panic_text;
use crate::observer::Event;
use crate::submission::{RunId, Submission};
use prime_protocol::{Effect, Ending, Outcome, Role, Run, SuspendedRun};
use prime_roles::AgentSetId;

/// The end of a run whose task's own code panicked.
fn broken(panic: &(dyn Any + Send)) -> Ending {
    Ending::AgentFailed(format!(
        "the run's own state cannot be carried on: panicked: {}",
        panic_text(panic)
    ))
}

/// Why a run ended, for the log.
fn reason_of(ending: &Ending) -> &str {
    match ending {
        Ending::AgentFailed(reason) => reason,
        other => other.name(),
    }
}

/// True if this ending cut a run short.
fn was_cut_short(ending: &Ending) -> bool {
    use Ending::{Cancelled, CostSpent, DeadlinePassed, StepsSpent, TokensSpent, WallMsSpent};
    matches!(
        ending,
        StepsSpent | TokensSpent | CostSpent | WallMsSpent | DeadlinePassed | Cancelled
    )
}

fn started_run(submission: &Submission, effects: &mut Vec<Effect>) -> Result<Run, Ending> {
    let (problem, plan) = (submission.problem.clone(), submission.plan.clone());
    // `Run::new` starts the task's machine, which is not the runtime's own code.
    let started = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(problem, plan);
        run.start(effects);
        run
    }));
    started.map_err(|panic| broken(panic.as_ref()))
}

impl Supervisor {
    /// Carries out effects of a run; the buffer is reused.
    pub(super) fn carry_out(
        &mut self,
        run: RunId,
        mut effects: Vec<Effect>,
        ctx: &mut Context<Self>,
    ) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => {
                    self.propose(run, Waiting { id, trajectory, speculation: None });
                }
                Effect::Ended(id, end, reward) => {
                    self.observe(run, &Event::TrajectoryEnded { id, end: &end, reward: &reward });
                }
                Effect::Chosen { round, chosen } => {
                    self.observe(run, &Event::Chosen { round, chosen: &chosen });
                }
                Effect::Voted { round, winner, agreement } => {
                    self.close_round(run, round);
                    self.observe(run, &Event::Voted { round, winner: winner.as_ref(), agreement });
                }
                Effect::Finish(outcome) => self.finish(run, *outcome, ctx),
            }
        }

        // Keeps the allocation; a nested call brings a buffer of its own.
        self.effects = effects;
        self.snapshot_if_gathered(run);
        if self.has_gates {
            self.suspend_if_all_wait(run, ctx);
        }
    }

    pub(super) fn observe(&self, run: RunId, event: &Event<'_>) {
        if let Some(live) = self.runs.get(&run) {
            live.submission.observer.observe(event);
        }
    }

    pub(super) fn finish(&mut self, run: RunId, mut outcome: Outcome, ctx: &mut Context<Self>) {
        if let Some(live) = self.runs.get_mut(&run) {
            if outcome.answer.is_none() && was_cut_short(&outcome.ending) {
                // What a turn has just met is newer than what a turn has failed with.
                let setback = self.plan.table.setback(run);
                outcome.last_failure = setback.or_else(|| live.last_failure.take());
            }

            live.submission.observer.observe(&Event::Finished(&outcome));
            self.forget(run);
            self.reply(run, outcome);
        }

        self.admit(ctx);
    }

    /// Drops a run without an event.
    pub(super) fn forget(&mut self, run: RunId) {
        if let Some(live) = self.runs.remove(&run) {
            if let Some(deadline) = live.deadline {
                self.deadlines.remove(deadline);
            }
            self.in_flight -= live.submission.plan.fanout;

            if let Some(runs) = self.sets.get_mut(&live.agents) {
                *runs -= 1;
            }
            self.drop_unused(live.agents);
        }
    }

    /// Drops the cell's agents of a set that no run uses, unless they are the default ones.
    pub(super) fn drop_unused(&mut self, set: AgentSetId) {
        // The default set is kept although idle: the next run most likely uses it.
        if set == self.plan.kept || self.sets.get(&set).is_some_and(|runs| *runs > 0) {
            return;
        }

        self.sets.remove(&set);
        self.restarts.remove(&set);
        if let Some(ring) = &self.ring {
            ring.drop_agents(set);
        }
    }

    fn reply(&self, run: RunId, outcome: Outcome) {
        if let Some(entry) = self.plan.table.finish(run) {
            entry.reply(outcome);
        }
    }

    /// Starts waiting runs while their turns fit; a run wider than the limit goes alone.
    pub(super) fn admit(&mut self, ctx: &mut Context<Self>) {
        while let Some((run, fanout)) = self.waiting.front().copied() {
            // An idle cell takes any run, or one wider than the limit would wait forever.
            if self.in_flight > 0 && self.in_flight + fanout > self.plan.runtime.in_flight_max {
                return;
            }

            self.waiting.pop_front();
            self.begin(run, ctx);
        }
    }

    /// Calls code that may run a task's own: if it panics, this run ends and no other.
    pub(super) fn guarded(
        &mut self,
        run: RunId,
        ctx: &mut Context<Self>,
        act: impl FnOnce(&mut Self, &mut Context<Self>),
    ) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self, ctx))) {
            // The run's state may be torn: none of it is used again.
            self.end_without_answer(run, broken(panic.as_ref()), ctx);
        }
    }

    /// Ends a run of whose state nothing can be used.
    pub(super) fn end_without_answer(
        &mut self,
        run: RunId,
        ending: Ending,
        ctx: &mut Context<Self>,
    ) {
        tracing::error!(run, "{}", reason_of(&ending));
        let elapsed_ms = self.elapsed_ms(run);
        self.observe(run, &Event::Stopped { ending: &ending, elapsed_ms });
        self.finish(run, Outcome::without_answer(ending), ctx);
    }

    pub(super) fn elapsed_ms(&self, run: RunId) -> u64 {
        self.runs.get(&run).map_or(0, |live| live.elapsed_ms())
    }

    /// Starts a run, unless it was moved to another cell or has ended.
    pub(super) fn begin(&mut self, id: RunId, ctx: &mut Context<Self>) {
        let started = Instant::now();
        let Some((mut submission, agents, span)) = self.plan.table.start(id, started) else {
            return;
        };

        let mut effects = std::mem::take(&mut self.effects);

        let mut held = (0, Vec::new());
        let (run, elapsed_before_ms) = match submission.suspended.take() {
            Some(suspended) => {
                let SuspendedRun { mut run, waiting, held: steps, holds, elapsed_ms } = *suspended;
                held = (holds, steps);
                // The steps so far keep the basis on which they were judged.
                run.set_judged_by(run.plan().basis);
                effects.extend(
                    waiting.into_iter().map(|(id, trajectory)| Effect::Propose(id, trajectory)),
                );
                (run, elapsed_ms)
            }
            None => match started_run(&submission, &mut effects) {
                Ok(run) => {
                    submission.observer.observe(&Event::Started { basis: run.plan().basis });
                    (run, 0)
                }
                Err(ending) => {
                    tracing::error!(run = id, "{}", reason_of(&ending));
                    // It never became live, so that `finish` would not report it.
                    submission.observer.observe(&Event::Stopped { ending: &ending, elapsed_ms: 0 });
                    let outcome = Outcome::without_answer(ending);
                    submission.observer.observe(&Event::Finished(&outcome));
                    return self.reply(id, outcome);
                }
            },
        };

        let wall =
            Duration::from_millis(submission.plan.budget.wall_ms.saturating_sub(elapsed_before_ms));
        let deadline = self.deadlines.insert(id, wall);
        let round = submission.plan.speculate.then(|| watch::Sender::new(()));

        let may_hold = submission.observer.may_hold();
        self.has_gates |= may_hold;
        let (holds, steps) = held;

        self.in_flight += submission.plan.fanout;
        *self.sets.entry(agents).or_default() += 1;
        let live = Live {
            run,
            agents,
            span,
            submission,
            started,
            cell: self.cell,
            started_ms: self.cell.now_ms(),
            deadline,
            elapsed_before_ms,
            last_failure: None,
            held: Vec::new(),
            hold: None,
            may_hold,
            holds,
            approvals: Vec::new(),
            started_early: None,
            round,
        };

        // Live before its first effects, each of which may already end it.
        self.runs.insert(id, Box::new(live));
        let resolved = self.hold_again(id, steps);
        self.guarded(id, ctx, |this, ctx| this.carry_out(id, effects, ctx));
        for (body, resolution) in resolved {
            self.carry_on(body, resolution, ctx);
        }
    }

    /// Ends a run whose deadline has passed.
    pub(super) fn expire(&mut self, run: RunId, ctx: &mut Context<Self>) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        // The queue has removed it.
        live.deadline = None;

        let elapsed_ms = live.elapsed_ms();
        let Some(ending) = live.run.expired(elapsed_ms) else {
            // The queue's clock and the run's round differently: the rest is waited for.
            let left = live.submission.plan.budget.wall_ms.saturating_sub(elapsed_ms);
            live.deadline = self.deadlines.insert(run, Duration::from_millis(left));
            return;
        };

        // A hanging agent is the reason to name: the run could not use its time.
        let hang = self.plan.table.hang_ending(live.started, Instant::now());
        self.stop(run, hang.unwrap_or(ending), ctx);
    }

    pub(super) fn stop(&mut self, run: RunId, ending: Ending, ctx: &mut Context<Self>) {
        self.with_run(run, ctx, |live, effects| {
            live.submission
                .observer
                .observe(&Event::Stopped { ending: &ending, elapsed_ms: live.elapsed_ms() });
            live.run.stop(ending, effects);
        });
    }

    pub(super) fn with_run(
        &mut self,
        run: RunId,
        ctx: &mut Context<Self>,
        act: impl FnOnce(&mut Live, &mut Vec<Effect>),
    ) {
        self.guarded(run, ctx, |this, ctx| {
            let Some(live) = this.runs.get_mut(&run) else { return };
            let mut effects = std::mem::take(&mut this.effects);
            act(live, &mut effects);
            this.carry_out(run, effects, ctx);
        });
    }

    /// Too many restarts: ends every run of the cell with this set's agents, with the role and the
    /// reason.
    pub(super) fn give_up(
        &mut self,
        role: Role,
        set: AgentSetId,
        reason: &str,
        ctx: &mut Context<Self>,
    ) {
        let limit = self.plan.runtime.restart_limit;
        let failure = format!(
            "the {role} was restarted {} times within {} s and died again: {reason}",
            limit.restarts_max,
            limit.window.as_secs_f64()
        );
        tracing::error!(%role, "{failure}");
        // Collected first, because `stop` changes the map.
        let runs: Vec<_> =
            self.runs.iter().filter(|(_, live)| live.agents == set).map(|(run, _)| *run).collect();
        for run in runs {
            self.stop(run, Ending::AgentFailed(failure.clone()), ctx);
        }
    }
}
