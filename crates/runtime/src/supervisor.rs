//! The Supervisor's actor: carries out what `protocol` decides for its cell's runs, and replaces
//! agents that die.

mod approvals;
mod handlers;
mod live;
mod proposals;
mod runs;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context, Recipient};
use rustc_hash::FxHashMap;

use super::cell::CellPlan;
use super::cooperative_yield::{OnIdle, YieldBudget};
use super::deadlines::Deadlines;
use super::messages::Release;
use super::restart_limit::RestartLog;
use super::ring::{Ring, SupervisorLink};
use super::submission::RunId;
use super::turn::{Returned, TurnBody};
use live::{CellClock, Live};
use prime_protocol::Effect;
use prime_roles::AgentSetId;

/// Mishaps of one turn (panics and errors of the agents at work on it) before its trajectory fails.
const MISHAPS_MAX: u32 = 5;
/// Turns of live runs above which a trajectory takes its steps in stints, while its state is in the
/// CPU caches.
const CROWD: u32 = 256;
/// Proposals of a stint; then it is the other trajectories' turn.
const STINT: u64 = 16;
/// Upper limit on the kept allocations of finished turns.
const SPARE_MAX: usize = 64;

/// How turns and observers reach this Supervisor.
struct Links {
    returned: Recipient<Returned>,
    release: Recipient<Release>,
}

/// Keeps the runs of a cell and its ring of agents.
pub struct Supervisor {
    plan: CellPlan,
    ring: Option<Ring>,
    links: Option<Links>,
    /// Restarts of each set's agents, by role.
    restarts: FxHashMap<AgentSetId, [RestartLog; 3]>,
    runs: FxHashMap<RunId, Box<Live>>,
    /// Number of runs with the agents of each set.
    sets: FxHashMap<AgentSetId, u32>,

    deadlines: Deadlines,
    budget: YieldBudget,
    /// The cell's clock, read once per batch and once after the mailbox was empty: what happens in
    /// between takes less than a millisecond.
    now_ms: Option<u64>,
    cell: CellClock,

    /// Allocations of finished turns.
    #[expect(clippy::vec_box, reason = "the box is what is reused")]
    spare: Vec<Box<TurnBody>>,
    /// Runs that do not fit yet, with their fan-outs.
    waiting: VecDeque<(RunId, u32)>,
    /// Turns that wait for the replacement of their agent.
    #[expect(clippy::vec_box, reason = "turns move on in the boxes that they came in")]
    parked: [Vec<Box<TurnBody>>; 3],

    /// Turns of live runs, for admission.
    in_flight: u32,
    /// True if a run of the cell was ever held for a snapshot; always false without a journal.
    takes_snapshots: bool,
    /// True if a run of the cell ever could hold steps for approval.
    has_gates: bool,
    effects: Vec<Effect>,
}

impl Supervisor {
    pub fn new(plan: CellPlan) -> Self {
        Self {
            plan,
            ring: None,
            links: None,
            restarts: FxHashMap::default(),
            runs: FxHashMap::default(),
            sets: FxHashMap::default(),
            deadlines: Deadlines::default(),
            budget: YieldBudget::default(),
            now_ms: None,
            cell: CellClock::start(),
            spare: Vec::new(),
            waiting: VecDeque::new(),
            parked: Default::default(),
            in_flight: 0,
            takes_snapshots: false,
            has_gates: false,
            effects: Vec::new(),
        }
    }

    /// Forgets the runs that were ended from outside, then acts while nobody else observes events
    /// of the cell's runs.
    fn exclusively(
        &mut self,
        ctx: &mut Context<Self>,
        act: impl FnOnce(&mut Self, &mut Context<Self>),
    ) {
        // A clone, because the guard must not borrow `self`.
        let table = Arc::clone(&self.plan.table);
        let mut ended = table.enter();
        for run in ended.drain(..) {
            self.forget(run);
        }

        act(self, ctx);
    }
}

impl OnIdle for Supervisor {
    fn on_idle(&mut self, ctx: &mut Context<Self>, task: &mut TaskContext<'_>) {
        self.now_ms = None;
        while let Some(run) = self.deadlines.poll_expired(task) {
            self.exclusively(ctx, |this, ctx| this.expire(run, ctx));
        }

        self.flush_proposals();
    }
}

/// Polls deadlines whenever the mailbox is empty.
struct Background;

impl ActorFuture<Supervisor> for Background {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        supervisor: &mut Supervisor,
        ctx: &mut Context<Supervisor>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        supervisor.on_idle(ctx, task);
        Poll::Pending
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Runs that have not ended will never get an outcome: their owners must not wait for one.
        self.plan.table.close();
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let own = ctx.address();
        self.links =
            Some(Links { returned: own.clone().recipient(), release: own.clone().recipient() });
        let link = SupervisorLink { decided: own.clone().recipient(), died: own.recipient() };

        self.ring = Some(Ring::start(&self.plan, link));
        ctx.spawn(Background);
    }
}
