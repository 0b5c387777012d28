//! The Supervisor's actor: carries out what `protocol` decides for its cell's runs, and replaces agents that die.

mod handlers;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Context as TaskContext;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context};
use rustc_hash::FxHashMap;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::time::delay_queue;

use super::batch::{Batch, LooksRound, Outbox};
use super::cell::{CellPlan, Ring};
use super::deadlines::{self, Deadlines};
use super::messages::{Decide, Judge, Propose, Release};
use super::observer::Event;
use super::speculation::{Foresight, Speculation};
use super::submission::{Load, RunId, Submission, Submitted};
use super::supervision::{RestartLog, panic_text};
use super::turn::{Turn, TurnBody};
use super::turn_timing::StageTimes;
use prime_protocol::{Effect, Ending, Outcome, Role, Run, RunSnapshot, SuspendedRun, Trajectory, TurnId};

/// Mishaps of one turn (panics and errors of agents working on it) before its trajectory fails.
const MISHAPS_MAX: u32 = 5;
/// Turns of live runs beyond which trajectories take their steps in stints, while their state is in the processor's caches.
const CROWD: u32 = 256;
/// Proposals that a trajectory then makes before others are let in.
const STINT: u64 = 16;
/// Most places of turns that are kept.
const SPARE_MAX: usize = 64;

struct Live {
    run: Run,
    submission: Submission,
    started: Instant,
    reply: oneshot::Sender<Outcome>,
    load: Load,
    /// When its time is up, where that is ever.
    deadline: Option<delay_queue::Key>,
    /// Milliseconds under way before it was handed in here.
    elapsed_before_ms: u64,
    /// Turns that wait, and what for.
    held: Vec<Waiting>,
    hold: Option<Hold>,
    /// The proposal after the step that has just been committed, where it was begun early.
    begun: Option<(TurnId, Box<Speculation>)>,
    /// Gives up what was begun early when the round is over; where something may be.
    round: Option<watch::Sender<()>>,
}

/// A turn between two proposals.
struct Waiting {
    id: TurnId,
    trajectory: Box<Trajectory>,
    /// Its next proposal, where that was begun early.
    speculation: Option<Box<Speculation>>,
}

/// Why a run makes no further proposals for a while.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// The observer is behind; it wakes the run.
    Behind,
    /// All its turns are gathered, so that it can be saved.
    Saving,
}

impl Live {
    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms_at(Instant::now())
    }

    fn elapsed_ms_at(&self, now: Instant) -> u64 {
        let here = u64::try_from(now.duration_since(self.started).as_millis()).unwrap_or(u64::MAX);
        here.saturating_add(self.elapsed_before_ms)
    }
}

/// Keeps the runs of a cell and its ring of agents.
pub struct Supervisor {
    plan: CellPlan,
    ring: Option<Ring>,
    /// Its own address, once it has started.
    home: Option<Addr<Self>>,
    restarts: [RestartLog; 3],
    runs: FxHashMap<RunId, Box<Live>>,
    deadlines: Deadlines,
    batch: Batch,
    /// Turns for the Executor.
    out: Outbox,
    /// Read once for a batch, or when the mailbox was empty: what is done meanwhile takes less than a millisecond.
    clock: Option<Instant>,
    /// Places of turns that are over.
    #[expect(clippy::vec_box, reason = "the box is what is used again")]
    spare: Vec<Box<TurnBody>>,
    waiting: VecDeque<Box<Submitted>>,
    /// Turns that wait for their agent to be replaced.
    #[expect(clippy::vec_box, reason = "turns move on as the boxes that they came in")]
    parked: [Vec<Box<TurnBody>>; 3],
    /// Turns of live runs, for admission.
    in_flight: u32,
    effects: Vec<Effect>,
}

/// The end of a run that cannot go on because the code of its task panicked.
fn broken(panic: &(dyn std::any::Any + Send)) -> Ending {
    Ending::AgentFailed(format!("the run's own state cannot be carried on: panicked: {}", panic_text(panic)))
}

impl Supervisor {
    pub fn new(plan: CellPlan) -> Self {
        Self {
            plan,
            ring: None,
            home: None,
            restarts: Default::default(),
            runs: FxHashMap::default(),
            deadlines: Deadlines::default(),
            batch: Batch::default(),
            out: Outbox::that_gathers(),
            clock: None,
            spare: Vec::new(),
            waiting: VecDeque::new(),
            parked: Default::default(),
            in_flight: 0,
            effects: Vec::new(),
        }
    }

    /// Sends a turn to the agent whose work it needs; those for the Executor, which are most, with others.
    fn send(&mut self, body: Box<TurnBody>) {
        let ring = self.ring.as_ref().expect("invariant: the ring stands once the actor has started");
        let role = body.stage;
        if !ring.is_connected(role) {
            self.parked[role as usize].push(body);
            return;
        }
        let turn = Turn::new(body);
        match role {
            Role::Executor => {
                self.out.push(turn);
                if self.out.is_full() {
                    self.send_proposals();
                }
            }
            Role::Verifier => ring.verifier.do_send(Judge(vec![turn])),
            Role::Coordinator => ring.coordinator.do_send(Decide(vec![turn])),
        }
    }

    fn send_proposals(&mut self) {
        if let (Some(turns), Some(ring)) = (self.out.take(), &self.ring) {
            // If the Executor has died meanwhile they come back, and find its successor.
            ring.executor.do_send(Propose(turns));
        }
    }

    fn propose(&mut self, run: RunId, mut waiting: Waiting) {
        let (Some(live), Some(home)) = (self.runs.get_mut(&run), &self.home) else { return };
        if let Some((_, begun)) = live.begun.take_if(|(of, _)| *of == waiting.id) {
            waiting.speculation = Some(begun);
        }
        let observer = &live.submission.observer;
        if live.hold.is_none() && live.run.is_whole() && observer.wants_saved() {
            live.hold = Some(Hold::Saving);
        }
        if live.hold.is_none() && observer.is_behind() {
            live.hold = Some(Hold::Behind);
            live.held.push(waiting);
            let home = home.clone();
            return observer.wake_when_free(Box::new(move || home.do_send(Release(run))));
        }
        if live.hold.is_some() {
            return live.held.push(waiting);
        }
        let Waiting { id, trajectory, speculation } = waiting;
        let Submission { plan, sampling: run_sampling, .. } = &live.submission;
        let sampling = run_sampling.of_turn(&plan.strategy, id, &trajectory);
        let foresight = live.round.as_ref().and_then(|round| Foresight::of(&live.run, *run_sampling, round));
        let laps = observer.wants_laps().then(|| Box::new(StageTimes::start()));
        let gives_way = self.in_flight > CROWD && trajectory.counts.proposals.is_multiple_of(STINT);
        let mut body = match self.spare.pop() {
            Some(mut body) => {
                body.again(run, id, trajectory, sampling);
                body
            }
            None => Box::new(TurnBody::new(home.clone(), run, id, trajectory, sampling)),
        };
        (body.gives_way, body.foresight, body.speculation, body.laps) = (gives_way, foresight, speculation, laps);
        self.send(body);
    }

    /// Carries out effects of a run; the buffer is kept between calls.
    fn carry_out(&mut self, run: RunId, mut effects: Vec<Effect>, ctx: &mut Context<Self>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => {
                    self.propose(run, Waiting { id, trajectory, speculation: None });
                }
                Effect::Ended(id, end, reward) => {
                    self.observe(run, &Event::TrajectoryEnded { id, end: &end, reward: &reward });
                }
                Effect::Chosen { round, chosen } => self.observe(run, &Event::Chosen { round, chosen: &chosen }),
                Effect::Voted { round, winner, agreement } => {
                    self.close_round(run);
                    self.observe(run, &Event::Voted { round, winner: winner.as_ref(), agreement });
                }
                Effect::Finish(outcome) => self.finish(run, *outcome, ctx),
            }
        }
        self.effects = effects;
        self.save_if_gathered(run);
    }

    /// Gives up what was begun early in the round.
    fn close_round(&mut self, run: RunId) {
        if let Some(live) = self.runs.get_mut(&run) {
            live.begun = None;
            live.round = live.round.is_some().then(|| watch::Sender::new(()));
        }
    }

    /// Saves a run all of whose live turns have come in for it, and lets them go on.
    fn save_if_gathered(&mut self, run: RunId) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        if live.hold != Some(Hold::Saving) {
            return;
        }
        // A round may have been closed meanwhile: its turns are of no use.
        live.held.retain(|held| live.run.wants(held.id));
        if live.held.len() == live.run.live() as usize {
            let waiting = live.held.iter().map(|held| (held.id, held.trajectory.as_ref()));
            live.submission.observer.save(RunSnapshot::of(&live.run, waiting, live.elapsed_ms()));
            self.release(run);
        }
    }

    fn release(&mut self, run: RunId) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        live.hold = None;
        for waiting in std::mem::take(&mut live.held) {
            self.propose(run, waiting);
        }
    }

    fn observe(&self, run: RunId, event: &Event<'_>) {
        if let Some(live) = self.runs.get(&run) {
            live.submission.observer.observe(event);
        }
    }

    fn finish(&mut self, run: RunId, outcome: Outcome, ctx: &mut Context<Self>) {
        if let Some(live) = self.runs.remove(&run) {
            live.submission.observer.observe(&Event::Finished(&outcome));
            if let Some(deadline) = live.deadline {
                self.deadlines.forget(deadline);
            }
            self.in_flight -= live.submission.plan.fanout;
            // The owner who hears of the end finds room for the next run.
            drop(live.load);
            // Nobody may be waiting any more: the run has ended all the same.
            drop(live.reply.send(outcome));
        }
        self.admit(ctx);
    }

    /// Starts waiting runs while their turns fit; a run wider than the limit goes alone.
    fn admit(&mut self, ctx: &mut Context<Self>) {
        while let Some(next) = self.waiting.front() {
            let fanout = next.submission.plan.fanout;
            if self.in_flight > 0 && self.in_flight + fanout > self.plan.in_flight_max {
                return;
            }
            let submitted = *self.waiting.pop_front().expect("invariant: there is a first");
            self.in_flight += fanout;
            self.begin(submitted, ctx);
        }
    }

    /// Does something with a run, whose task's code may be wrong: if it panics, that run ends, and no other.
    fn guarded(&mut self, run: RunId, ctx: &mut Context<Self>, act: impl FnOnce(&mut Self, &mut Context<Self>)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self, ctx))) {
            let ending = broken(panic.as_ref());
            tracing::error!(run, "{ending:?}");
            // The run's own state may be torn: nothing of it is used any more.
            self.observe(run, &Event::Stopped { ending: &ending, elapsed_ms: self.elapsed_ms(run) });
            self.finish(run, Outcome::without_answer(ending), ctx);
        }
    }

    fn elapsed_ms(&self, run: RunId) -> u64 {
        self.runs.get(&run).map_or(0, |live| live.elapsed_ms())
    }

    fn begin(&mut self, submitted: Submitted, ctx: &mut Context<Self>) {
        let Submitted { id, mut submission, reply, load } = submitted;
        let mut effects = std::mem::take(&mut self.effects);
        let (run, elapsed_before_ms) = match submission.resting.take() {
            Some(resting) => {
                let SuspendedRun { run, waiting, elapsed_ms } = *resting;
                effects.extend(waiting.into_iter().map(|(id, trajectory)| Effect::Propose(id, trajectory)));
                (run, Some(elapsed_ms))
            }
            None => {
                let (problem, plan) = (submission.problem.clone(), submission.plan.clone());
                let started = catch_unwind(AssertUnwindSafe(|| {
                    let mut run = Run::new(problem, plan);
                    run.start(&mut effects);
                    run
                }));
                match started {
                    Ok(run) => (run, None),
                    Err(panic) => {
                        let ending = broken(panic.as_ref());
                        tracing::error!(run = id, "{ending:?}");
                        submission.observer.observe(&Event::Stopped { ending: &ending, elapsed_ms: 0 });
                        let outcome = Outcome::without_answer(ending);
                        submission.observer.observe(&Event::Finished(&outcome));
                        self.in_flight -= submission.plan.fanout;
                        drop(load);
                        return drop(reply.send(outcome));
                    }
                }
            }
        };
        if elapsed_before_ms.is_none() {
            submission.observer.observe(&Event::Started);
        }
        let elapsed_before_ms = elapsed_before_ms.unwrap_or(0);
        let wall = Duration::from_millis(submission.plan.budget.wall_ms.saturating_sub(elapsed_before_ms));
        let started = Instant::now();
        let deadline = self.deadlines.note(id, wall);
        let round = submission.plan.speculate.then(|| watch::Sender::new(()));
        self.runs.insert(
            id,
            Box::new(Live {
                run,
                submission,
                started,
                reply,
                load,
                deadline,
                elapsed_before_ms,
                held: Vec::new(),
                hold: None,
                begun: None,
                round,
            }),
        );
        self.guarded(id, ctx, |this, ctx| this.carry_out(id, effects, ctx));
    }

    /// A run's time is up.
    fn expire(&mut self, run: RunId, ctx: &mut Context<Self>) {
        let Some(live) = self.runs.get_mut(&run) else { return };
        // The queue has forgotten it.
        live.deadline = None;
        if let Some(ending) = live.run.expired(live.elapsed_ms()) {
            self.stop(run, ending, ctx);
        }
    }

    fn stop(&mut self, run: RunId, ending: Ending, ctx: &mut Context<Self>) {
        self.with_run(run, ctx, |live, effects| {
            live.submission.observer.observe(&Event::Stopped { ending: &ending, elapsed_ms: live.elapsed_ms() });
            live.run.stop(ending, effects);
        });
    }

    fn with_run(&mut self, run: RunId, ctx: &mut Context<Self>, act: impl FnOnce(&mut Live, &mut Vec<Effect>)) {
        self.guarded(run, ctx, |this, ctx| {
            let Some(live) = this.runs.get_mut(&run) else { return };
            let mut effects = std::mem::take(&mut this.effects);
            act(live, &mut effects);
            this.carry_out(run, effects, ctx);
        });
    }

    /// Too many restarts: every run of the cell ends, with the agent's name and the reason.
    fn give_up(&mut self, role: Role, reason: &str, ctx: &mut Context<Self>) {
        let limit = self.plan.restart_limit;
        let failure = format!(
            "the {role} was restarted {} times within {} s and died again: {reason}",
            limit.restarts_max,
            limit.window.as_secs_f64()
        );
        tracing::error!(%role, "{failure}");
        let runs: Vec<_> = self.runs.keys().copied().collect();
        for run in runs {
            self.stop(run, Ending::AgentFailed(failure.clone()), ctx);
        }
    }
}

impl LooksRound for Supervisor {
    fn look_round(&mut self, ctx: &mut Context<Self>, task: &mut TaskContext<'_>) {
        self.clock = None;
        while let Some(run) = self.deadlines.next(task) {
            self.expire(run, ctx);
        }
        self.send_proposals();
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // Decided turns of thousands of trajectories may wait here; each is bounded by admission, not by the mailbox.
        ctx.set_mailbox_capacity(1 << 16);
        let home = ctx.address();
        self.ring = Some(Ring::build(&self.plan, &home));
        self.home = Some(home);
        ctx.spawn(deadlines::Watch);
    }
}
