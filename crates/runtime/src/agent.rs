//! The actor of an agent: does its role's work on each turn and passes the turn on. Immediate
//! replies run inline, without a task. A panic in the work kills this actor and no other.

use std::any::Any;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context, Handler};
use futures::stream::FuturesUnordered;
use futures::task::noop_waker_ref;
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;
use tokio_util::sync::ReusableBoxFuture;
use tracing::{Instrument, Span};

use super::cooperative_yield::{OnIdle, TURNS_MAX, YieldBudget};
use super::death_watch::{DeathWatch, panic_text};
use super::heartbeat::Heartbeat;
use super::messages::{Decide, DropAgents, Judge, Propose, Rewire};
use super::outbox::Outbox;
use super::run_span;
use super::run_table::{RoundOver, RunTable, last_failure};
use super::turn::{Turn, TurnBody, Turns};
use super::turn_timing::Stage;
use super::work::{Coordinate, Execute, Verify, Work};
use prime_roles::{AgentError, AgentSetId, Failure, live, setback};

type Panic = Box<dyn Any + Send>;
type Worked = (Turn, Result<Result<(), AgentError>, Panic>);

/// An agent of a set.
struct Member<W> {
    set: AgentSetId,
    work: Arc<W>,
    /// Set after its first `Later` reply: from then on each turn's work is a future.
    may_wait: bool,
}

/// Work that waits for a model, a process or a person.
struct Waiting {
    round_over: RoundOver,
    working: ReusableBoxFuture<'static, Worked>,
}

impl Future for Waiting {
    /// `None` if nobody needs the turn any more. The actor that polled this then drops the work,
    /// which kills its process or closes its connection, and the turn with it, which goes home.
    type Output = Option<Worked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match self.round_over.poll_unpin(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => self.working.poll(context).map(Some),
        }
    }
}

/// The actor of one role.
pub struct Agent<W: Work> {
    /// Agents of the sets that the cell's runs use. Each is made at its first turn, so that a
    /// constructor that panics is a mishap like any other. There are few, and a turn most often
    /// needs the same one as the turn before.
    members: Vec<Member<W>>,
    /// Index of the agent that worked last.
    current: usize,
    /// The cell's runs: whose agents to make, and which turns are still needed.
    table: Arc<RunTable>,
    death_watch: DeathWatch,
    heartbeat: Arc<Heartbeat>,
    budget: YieldBudget,

    out: Outbox<W::Out>,
    /// A free allocation for the future of the next turn.
    spare: Option<ReusableBoxFuture<'static, Worked>>,
    waiting: FuturesUnordered<Waiting>,
    /// Turns that begin only when no other turn is on its way.
    deferred: VecDeque<Turn>,
    /// Number of times in a row that the mailbox was found empty.
    idle_polls: u32,
}

impl<W: Work> Agent<W> {
    pub fn new(
        table: Arc<RunTable>,
        death_watch: DeathWatch,
        heartbeat: Arc<Heartbeat>,
        out: Outbox<W::Out>,
    ) -> Self {
        Self {
            members: Vec::new(),
            current: 0,
            table,
            death_watch,
            heartbeat,
            budget: YieldBudget::default(),
            out,
            spare: None,
            waiting: FuturesUnordered::new(),
            deferred: VecDeque::new(),
            idle_polls: 0,
        }
    }

    /// Handles the role's message.
    fn take(&mut self, mut turns: Turns, ctx: &mut Context<Self>) {
        self.idle_polls = 0;
        let yields = self.budget.spend(turns.len(), ctx);

        self.enter();
        for mut turn in turns.drain(..) {
            if turn.body().is_deferrable {
                self.deferred.push_back(turn);
            } else {
                self.begin(turn);
            }
        }

        self.heartbeat.leave();
        self.out.recycle(turns);
        // The next actor gets what was gathered before this one pauses.
        if yields {
            self.out.flush();
        }
    }

    /// Tells the watchdog that a batch begins, with the agent that worked last.
    fn enter(&self) {
        self.heartbeat
            .enter(W::ROLE, self.members.get(self.current).map_or(0, |member| member.set));
    }

    /// Makes the agent of the turn's set the current one; false if the turn's run is over.
    #[cold]
    fn switch(&mut self, turn: &TurnBody) -> Result<bool, Panic> {
        self.heartbeat.switch(turn.agents);

        if let Some(known) = self.members.iter().position(|member| member.set == turn.agents) {
            self.current = known;
            return Ok(true);
        }

        let Some(agents) = self.table.agents_of(turn.run) else { return Ok(false) };
        let work = catch_unwind(AssertUnwindSafe(|| W::new(agents.as_ref())))?;

        self.current = self.members.len();
        self.members.push(Member { set: turn.agents, work: Arc::new(work), may_wait: false });
        Ok(true)
    }

    fn begin(&mut self, mut turn: Turn) {
        turn.body().end_stage(Stage::To(W::ROLE));
        let set = turn.body().agents;
        if self.members.get(self.current).is_none_or(|member| member.set != set) {
            match self.switch(turn.body()) {
                Ok(true) => {}
                // Nobody waits for it: its Supervisor drops it.
                Ok(false) => return,
                Err(panic) => return self.pass_on((turn, Err(panic))),
            }
        }

        let member = &mut self.members[self.current];
        let work = &member.work;
        let span = run_span::of_work(W::ROLE, turn.body());

        if !member.may_wait {
            let worked = catch_unwind(AssertUnwindSafe(|| match &span {
                None => work.work_now(turn.body()),
                Some(span) => span.in_scope(|| work.work_now(turn.body())),
            }));
            match worked {
                Ok(Some(result)) => return self.pass_on((turn, Ok(result))),
                Ok(None) => member.may_wait = true,
                Err(panic) => return self.pass_on((turn, Err(panic))),
            }
        }

        // Its agent needs time, or may: the work becomes a future, which owns the turn.
        let (run, id) = (turn.body().run, turn.body().id);
        let listener = self.table.listener(run, id, W::ROLE);
        let (work, heartbeat) = (Arc::clone(work), Arc::clone(&self.heartbeat));
        let table = Arc::clone(&self.table);
        let working = async move {
            let start = Instant::now();
            let mut is_set_back = false;

            let result = {
                let working = work.work(turn.body()).instrument(span.unwrap_or_else(Span::none));
                let mut working = pin!(AssertUnwindSafe(working).catch_unwind());
                // Work of several sets' agents is polled in one batch: the watchdog must blame the
                // right one.
                let polled = poll_fn(|context| {
                    heartbeat.switch(set);
                    let (polled, setback) = setback::observed(|| {
                        live::heard(listener.as_ref(), || working.as_mut().poll(context))
                    });
                    if let Some(error) = setback.filter(|_| polled.is_pending()) {
                        is_set_back = true;
                        table.set_setback(run, Some(last_failure(W::ROLE, &error)));
                    }
                    polled
                });
                polled.await
            };

            // Overcome, or returned as the turn's error.
            if is_set_back {
                table.set_setback(run, None);
            }

            turn.body().waited.add(W::ROLE, start.elapsed());
            (turn, result)
        };

        let mut working = match self.spare.take() {
            Some(mut spare) => {
                spare.set(working);
                spare
            }
            None => ReusableBoxFuture::new(working),
        };

        // Polled once right away: work that is done by then needs no place in the set.
        match working.poll(&mut TaskContext::from_waker(noop_waker_ref())) {
            Poll::Ready(worked) => {
                self.spare = Some(working);
                self.pass_on(worked);
            }
            // Polled again by the set, with a waker of its own. If the round has ended while the
            // turn was on its way, both are dropped here.
            Poll::Pending => {
                let round_over = self.table.round_over(run, id.round);
                self.waiting.extend(round_over.map(|round_over| Waiting { round_over, working }));
            }
        }
    }

    fn pass_on(&mut self, (mut turn, result): Worked) {
        match result {
            Ok(Ok(())) => {
                let body = turn.body();
                body.end_stage(Stage::Work(W::ROLE));
                body.stage = W::NEXT;
                self.out.push(turn);
            }
            Ok(Err(error)) => {
                // Dropped, the turn returns to its Supervisor, which retries it or gives it up.
                let body = turn.body();
                body.mishaps += 1;
                body.wasted.add(error.usage);
                body.last_error = Some(error);
            }
            Err(panic) => {
                let body = turn.body();
                body.mishaps += 1;
                let (set, reason) =
                    (body.agents, format!("panicked: {}", panic_text(panic.as_ref())));

                body.last_error =
                    Some(AgentError::new(W::ROLE.to_string(), Failure::Panicked, reason.clone()));
                drop(turn);
                self.death_watch.set_reason(set, reason);
                // Unwinding skips the `leave` of the caller.
                self.heartbeat.leave();
                // The agent's own state may be torn: this actor dies, and its Supervisor starts
                // another.
                resume_unwind(panic);
            }
        }
    }
}

impl<W: Work> Actor for Agent<W> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(Background);
    }
}

impl<W: Work> OnIdle for Agent<W> {
    /// Passes on turns whose work was waiting. However many wait, each wakes the actor for itself
    /// alone.
    fn on_idle(&mut self, _: &mut Context<Self>, task: &mut TaskContext<'_>) {
        // Polling the set is the most expensive part of a wake-up.
        if !self.waiting.is_empty() {
            self.enter();
            while let Poll::Ready(Some(worked)) = self.waiting.poll_next_unpin(task) {
                if let Some(worked) = worked {
                    self.pass_on(worked);
                }
            }
            self.heartbeat.leave();
        }

        self.out.flush();
    }
}

/// Polls the agent's background work whenever its mailbox is empty.
struct Background;

/// Empty polls in a row after which no turn is on its way on this thread, which has at most four
/// actors.
const IDLE_POLLS_MIN: u32 = 4;

impl<W: Work> ActorFuture<Agent<W>> for Background {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        agent: &mut Agent<W>,
        ctx: &mut Context<Agent<W>>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        if agent.idle_polls >= IDLE_POLLS_MIN {
            agent.idle_polls = 0;
            agent.enter();
            for _ in 0..TURNS_MAX {
                let Some(turn) = agent.deferred.pop_front() else { break };
                agent.begin(turn);
            }
            agent.heartbeat.leave();
        }

        agent.on_idle(ctx, task);
        agent.idle_polls += 1;
        // Nothing else may wake this actor before the count of empty polls is reached.
        if !agent.deferred.is_empty() {
            task.waker().wake_by_ref();
        }

        Poll::Pending
    }
}

macro_rules! handlers {
    ($($work:ident: $message:ident;)*) => { $(
        impl Handler<$message> for Agent<$work> {
            type Result = ();
            fn handle(&mut self, message: $message, ctx: &mut Context<Self>) {
                self.take(message.0, ctx);
            }
        }
    )* };
}
handlers! { Execute: Propose; Verify: Judge; Coordinate: Decide; }

impl<W: Work> Handler<DropAgents> for Agent<W> {
    type Result = ();
    fn handle(&mut self, message: DropAgents, _: &mut Context<Self>) {
        let unused: Vec<_> =
            self.members.extract_if(.., |member| member.set == message.0).collect();
        // Indices have moved; the next turn of another set finds its agent again.
        self.current = 0;
        if !unused.is_empty() {
            // An agent may wait for its processes to end.
            drop(tokio::task::spawn_blocking(move || drop(unused)));
        }
    }
}

impl<W: Work> Handler<Rewire<W::Out>> for Agent<W> {
    type Result = ();
    fn handle(&mut self, message: Rewire<W::Out>, _: &mut Context<Self>) {
        self.out.redirect(message.0);
    }
}
