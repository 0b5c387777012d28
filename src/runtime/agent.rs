//! The actor shell of the three agents: it does its role's work on a turn and passes the turn on.
//! Work that is ready at once costs no task; a panic in the work kills this actor, and only it.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, WrapFuture};
use async_trait::async_trait;
use futures::FutureExt;
use futures::task::noop_waker_ref;

use super::laps::Leg;
use super::messages::{Decide, Decided, Judge, Propose, Rewire};
use super::speculation;
use super::supervision::{Watch, panic_text};
use super::turn::{Turn, TurnBody};
use crate::agents::{AgentError, Coordinator, Executor, Failure, Verifier};
use crate::protocol::{Decision, Role, Score, Verdict};

/// What a role does to a turn, and the messages that bring it and take it on.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    type In: Message<Result = ()> + Into<Turn> + Send + 'static;
    type Out: Message<Result = ()> + From<Turn> + Send + 'static;
    const ROLE: Role;
    const NEXT: Role;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError>;
}

macro_rules! into_turn {
    ($($message:ident),*) => { $( impl From<$message> for Turn { fn from(message: $message) -> Self { message.0 } } )* };
}
into_turn!(Propose, Judge, Decide);

/// The work of an Executor: propose a line and carry it out on a copy of the state. It may begin the next one early.
pub struct Execute(pub Arc<dyn Executor>);

/// The work of a Verifier: score what the line did.
pub struct Verify(pub Arc<dyn Verifier>);

/// The work of a Coordinator: decide what becomes of it.
pub struct Coordinate(pub Arc<dyn Coordinator>);

#[async_trait]
impl Work for Execute {
    type In = Propose;
    type Out = Judge;
    const ROLE: Role = Role::Executor;
    const NEXT: Role = Role::Verifier;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError> {
        let proposed = speculation::propose(&self.0, turn).await?;
        turn.is_applicable = turn.trajectory.machine.propose(&turn.proposal.line).is_ok();
        turn.is_repeated = turn.trajectory.excludes(&turn.proposal.line);
        speculation::look_ahead(&self.0, turn, proposed);
        Ok(())
    }
}

#[async_trait]
impl Work for Verify {
    type In = Judge;
    type Out = Decide;
    const ROLE: Role = Role::Verifier;
    const NEXT: Role = Role::Coordinator;

    async fn work(&self, turn: &mut TurnBody) -> Result<(), AgentError> {
        turn.verdict = if turn.is_repeated {
            let feedback = Some("this action was rejected in this state before".to_owned());
            Verdict { score: Score::from_tenths(10), feedback, ..Verdict::default() }
        } else {
            self.0.judge(&turn.trajectory, &turn.proposal.line).await?
        };
        Ok(())
    }
}

#[async_trait]
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
}

/// An independent actor that does one role's work.
pub struct Agent<W: Work> {
    /// Made at the first turn, so that a constructor that panics is a mishap like any other.
    work: Option<Arc<W>>,
    make: Box<dyn Fn() -> W + Send>,
    downstream: Recipient<W::Out>,
    watch: Watch,
    role: PhantomData<fn() -> W>,
}

type Panic = Box<dyn std::any::Any + Send>;
type Worked = (Turn, Result<Result<(), AgentError>, Panic>);

impl<W: Work> Agent<W> {
    pub fn new(make: impl Fn() -> W + Send + 'static, downstream: Recipient<W::Out>, watch: Watch) -> Self {
        Self { work: None, make: Box::new(make), downstream, watch, role: PhantomData }
    }

    fn pass_on(&mut self, (mut turn, result): Worked) {
        match result {
            Ok(Ok(())) => {
                let body = turn.body();
                body.end(Leg::Work(W::ROLE));
                body.stage = W::NEXT;
                self.downstream.do_send(W::Out::from(turn));
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
}

/// Handles the role's message; named by the bound `Handler<W::In>`.
impl<W: Work> Agent<W> {
    fn take(&mut self, mut turn: Turn, ctx: &mut Context<Self>) {
        turn.body().end(Leg::To(W::ROLE));
        let work = match &self.work {
            Some(work) => Arc::clone(work),
            None => match catch_unwind(AssertUnwindSafe(|| (self.make)())) {
                Ok(work) => Arc::clone(self.work.insert(Arc::new(work))),
                Err(panic) => return self.pass_on((turn, Err(panic))),
            },
        };
        let mut working: Pin<Box<dyn Future<Output = Worked>>> = Box::pin(async move {
            let result = AssertUnwindSafe(work.work(turn.body())).catch_unwind().await;
            (turn, result)
        });
        match working.as_mut().poll(&mut TaskContext::from_waker(noop_waker_ref())) {
            Poll::Ready(worked) => self.pass_on(worked),
            Poll::Pending => {
                ctx.spawn(working.into_actor(self).map(|worked, this, _| this.pass_on(worked)));
            }
        }
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
