//! The actor shell of the three agents: it does its role's work on a turn and passes the turn on.
//! Work that is ready at once costs no task; a panic in the work kills this actor, and only it.

use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context, Handler, Message, Recipient};
use futures::stream::FuturesUnordered;
use futures::task::noop_waker_ref;
use futures::{FutureExt, StreamExt};
use tokio_util::sync::ReusableBoxFuture;

use super::batch::{self, Batch, LooksRound, Outbox};
use super::messages::{Decide, Decided, Judge, Propose, Rewire};
use super::speculation;
use super::supervision::{Watch, panic_text};
use super::turn::{Turn, TurnBody, Turns};
use super::turn_timing::Stage;
use crate::agents::{AgentError, Coordinator, Executor, Failure, Verifier};
use prime_protocol::{Decision, Role, Score, Verdict};

/// What a role does to a turn, and the messages that bring it and take it on.
pub trait Work: Send + Sync + 'static {
    type In: Message<Result = ()> + Send + 'static;
    type Out: Message<Result = ()> + From<Turns> + Send + 'static;
    const ROLE: Role;
    const NEXT: Role;

    fn work(&self, turn: &mut TurnBody) -> impl Future<Output = Result<(), AgentError>> + Send;

    /// The same for an agent that never waits: no future is made for such a turn. `None`: nothing was done.
    fn work_at_once(&self, turn: &mut TurnBody) -> Option<Result<(), AgentError>>;
}

/// The work of an Executor: propose a line and carry it out on a copy of the state. It may begin the next one early.
pub struct Execute(pub Arc<dyn Executor>);

/// The work of a Verifier: score what the line did.
pub struct Verify(pub Arc<dyn Verifier>);

/// The work of a Coordinator: decide what becomes of it.
pub struct Coordinate(pub Arc<dyn Coordinator>);

impl Work for Execute {
    type In = Propose;
    type Out = Judge;
    const ROLE: Role = Role::Executor;
    const NEXT: Role = Role::Verifier;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError> {
        let proposed = speculation::propose(&self.0, turn).await?;
        turn.apply();
        speculation::look_ahead(&self.0, turn, proposed);
        Ok(())
    }

    fn work_at_once(&self, turn: &mut TurnBody) -> Option<Result<(), AgentError>> {
        if turn.foresight.is_some() || turn.speculation.is_some() {
            return None;
        }
        let proposed = self.0.propose_at_once(&turn.trajectory, turn.sampling)?;
        Some(proposed.map(|proposal| {
            turn.proposal = proposal;
            turn.apply();
        }))
    }
}

/// The verdict on a line that was rejected at this state before.
fn rejected_before() -> Verdict {
    let feedback = Some("this action was rejected in this state before".to_owned());
    Verdict { score: Score::from_tenths(10), feedback, ..Verdict::default() }
}

impl Work for Verify {
    type In = Judge;
    type Out = Decide;
    const ROLE: Role = Role::Verifier;
    const NEXT: Role = Role::Coordinator;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError> {
        turn.verdict = if turn.is_repeated {
            rejected_before()
        } else {
            self.0.judge(&turn.trajectory, &turn.proposal.line).await?
        };
        Ok(())
    }

    fn work_at_once(&self, turn: &mut TurnBody) -> Option<Result<(), AgentError>> {
        let judged = if turn.is_repeated {
            Ok(rejected_before())
        } else {
            self.0.judge_at_once(&turn.trajectory, &turn.proposal.line)?
        };
        Some(judged.map(|verdict| turn.verdict = verdict))
    }
}

impl Work for Coordinate {
    type In = Decide;
    type Out = Decided;
    const ROLE: Role = Role::Coordinator;
    const NEXT: Role = Role::Executor;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError> {
        turn.ruling = if turn.is_repeated {
            Decision::Backtrack.into()
        } else {
            self.0.decide(&turn.trajectory, &turn.proposal.line, &turn.verdict).await?
        };
        Ok(())
    }

    fn work_at_once(&self, turn: &mut TurnBody) -> Option<Result<(), AgentError>> {
        let decided = if turn.is_repeated {
            Ok(Decision::Backtrack.into())
        } else {
            self.0.decide_at_once(&turn.trajectory, &turn.proposal.line, &turn.verdict)?
        };
        Some(decided.map(|ruling| turn.ruling = ruling))
    }
}

/// An independent actor that does one role's work.
pub struct Agent<W: Work> {
    /// Made at the first turn, so that a constructor that panics is a mishap like any other.
    work: Option<Arc<W>>,
    make: Box<dyn Fn() -> W + Send>,
    downstream: Recipient<W::Out>,
    watch: Watch,
    batch: Batch,
    out: Outbox,
    /// Where the next turn's work is put; work that is ready at once leaves the place to the next.
    place: Option<ReusableBoxFuture<'static, Worked>>,
    /// Work that waits: for a model, a process, a person.
    waiting: FuturesUnordered<ReusableBoxFuture<'static, Worked>>,
    /// Turns that give way to those that come round while they wait.
    later: VecDeque<Turn>,
    /// How often the mailbox was empty since a turn came.
    idle: u32,
    role: PhantomData<fn() -> W>,
}

type Panic = Box<dyn std::any::Any + Send>;
type Worked = (Turn, Result<Result<(), AgentError>, Panic>);

impl<W: Work> Agent<W> {
    pub fn new(
        make: impl Fn() -> W + Send + 'static,
        downstream: Recipient<W::Out>,
        watch: Watch,
        out: Outbox,
    ) -> Self {
        Self {
            work: None,
            make: Box::new(make),
            downstream,
            watch,
            batch: Batch::default(),
            out,
            place: None,
            waiting: FuturesUnordered::new(),
            later: VecDeque::new(),
            idle: 0,
            role: PhantomData,
        }
    }

    /// Sends what was done.
    fn send(&mut self) {
        if let Some(turns) = self.out.take() {
            self.downstream.do_send(W::Out::from(turns));
        }
    }

    fn pass_on(&mut self, (mut turn, result): Worked) {
        match result {
            Ok(Ok(())) => {
                let body = turn.body();
                body.end(Stage::Work(W::ROLE));
                body.stage = W::NEXT;
                self.out.push(turn);
                if self.out.is_full() {
                    self.send();
                }
            }
            Ok(Err(error)) => {
                // Dropped, the turn goes home, where it is tried again or given up.
                let body = turn.body();
                body.mishaps += 1;
                body.last_error = Some(error);
            }
            Err(panic) => {
                let body = turn.body();
                body.mishaps += 1;
                let reason = format!("panicked: {}", panic_text(panic.as_ref()));
                body.last_error = Some(AgentError::new(W::ROLE.to_string(), Failure::Panicked, reason.clone()));
                drop(turn);
                self.watch.note(reason);
                // The agent's own state may be torn: this actor dies, and its Supervisor starts another.
                resume_unwind(panic);
            }
        }
    }
}

impl<W: Work> Actor for Agent<W> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(Await);
    }
}

/// Handles the role's message; named by the bound `Handler<W::In>`.
impl<W: Work> Agent<W> {
    fn take(&mut self, mut turns: Turns, ctx: &mut Context<Self>) {
        self.idle = 0;
        let is_full = self.batch.count(turns.len(), ctx);
        for mut turn in turns.drain(..) {
            if turn.body().gives_way {
                self.later.push_back(turn);
            } else {
                self.begin(turn);
            }
        }
        self.out.give(turns);
        if is_full {
            self.send();
        }
    }

    fn begin(&mut self, mut turn: Turn) {
        turn.body().end(Stage::To(W::ROLE));
        let work = match &self.work {
            Some(work) => work,
            None => match catch_unwind(AssertUnwindSafe(|| (self.make)())) {
                Ok(work) => self.work.insert(Arc::new(work)),
                Err(panic) => return self.pass_on((turn, Err(panic))),
            },
        };
        match catch_unwind(AssertUnwindSafe(|| work.work_at_once(turn.body()))) {
            Ok(Some(result)) => return self.pass_on((turn, Ok(result))),
            Ok(None) => {}
            Err(panic) => return self.pass_on((turn, Err(panic))),
        }
        let work = Arc::clone(work);
        let working = async move {
            let result = AssertUnwindSafe(work.work(turn.body())).catch_unwind().await;
            (turn, result)
        };
        let mut place = match self.place.take() {
            Some(mut place) => {
                place.set(working);
                place
            }
            None => ReusableBoxFuture::new(working),
        };
        match place.poll(&mut TaskContext::from_waker(noop_waker_ref())) {
            Poll::Ready(worked) => {
                self.place = Some(place);
                self.pass_on(worked);
            }
            Poll::Pending => self.waiting.push(place),
        }
    }
}

impl<W: Work> LooksRound for Agent<W> {
    /// Passes on what has waited. Each turn wakes the actor for itself alone, however many wait beside it.
    fn look_round(&mut self, _: &mut Context<Self>, task: &mut TaskContext<'_>) {
        // Asking it costs more than all else here, at every wake-up.
        if !self.waiting.is_empty() {
            while let Poll::Ready(Some(worked)) = self.waiting.poll_next_unpin(task) {
                self.pass_on(worked);
            }
        }
        self.send();
    }
}

/// Looks after turns that wait or are done, whenever the mailbox is empty.
struct Await;

/// Empty mailboxes in a row after which no turn is on its way round on this thread: there are four actors on it at most.
const ROUND: u32 = 4;

impl<W: Work> ActorFuture<Agent<W>> for Await {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        agent: &mut Agent<W>,
        ctx: &mut Context<Agent<W>>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        if agent.idle >= ROUND {
            agent.idle = 0;
            for _ in 0..batch::TURNS_MAX {
                let Some(turn) = agent.later.pop_front() else { break };
                agent.begin(turn);
            }
        }
        agent.look_round(ctx, task);
        agent.idle += 1;
        if !agent.later.is_empty() {
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

impl<W: Work> Handler<Rewire<W::Out>> for Agent<W> {
    type Result = ();
    fn handle(&mut self, message: Rewire<W::Out>, _: &mut Context<Self>) {
        self.downstream = message.0;
    }
}
