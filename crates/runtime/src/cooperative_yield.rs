//! Cooperative yielding between actors on one thread.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context};

/// Turns that an actor takes before it yields. Actix drains a mailbox at every wake-up; of
/// thousands of turns in it, each would have left the CPU caches before the next actor got it.
pub const TURNS_MAX: usize = 64;

/// An actor with background work.
pub trait OnIdle: Actor<Context = Context<Self>> {
    /// Called when the mailbox is empty, and after each yield.
    fn on_idle(&mut self, ctx: &mut Context<Self>, task: &mut TaskContext<'_>);
}

/// Counts the turns that an actor has taken since it last yielded.
#[derive(Debug, Default)]
pub struct YieldBudget(usize);

impl YieldBudget {
    /// Adds `turns`. When the budget is spent, returns true and yields before the next message.
    pub fn spend<A: OnIdle>(&mut self, turns: usize, ctx: &mut Context<A>) -> bool {
        self.0 += turns;
        let is_spent = self.0 >= TURNS_MAX;
        if is_spent {
            self.0 = 0;
            ctx.wait(Yield { has_yielded: false });
        }
        is_spent
    }
}

/// Pending once, so that the other actors of the thread run.
struct Yield {
    has_yielded: bool,
}

impl<A: OnIdle> ActorFuture<A> for Yield {
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut A::Context,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        if self.has_yielded {
            // While the mailbox is never empty, nothing else of the actor is polled.
            actor.on_idle(ctx, task);
            return Poll::Ready(());
        }

        self.has_yielded = true;
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
