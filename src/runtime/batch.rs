//! How long an actor works without letting the others of its thread work.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context};

/// Turns that an actor takes before the others' turn comes. An actor drains its mailbox at every wake-up; with thousands
/// of turns in it, each would have left the processor's caches before the next actor gets it.
const TURNS_MAX: u32 = 64;

/// Counts the turns that an actor has taken since it last gave way.
#[derive(Debug, Default)]
pub struct Batch(u32);

impl Batch {
    /// One more; after the last of a batch the actor takes no message until the others have had their turn.
    pub fn count<A: Actor<Context = Context<A>>>(&mut self, ctx: &mut Context<A>) {
        self.0 += 1;
        if self.0 == TURNS_MAX {
            self.0 = 0;
            ctx.wait(GiveWay { is_done: false });
        }
    }
}

/// Ready when the thread has come round to this actor again.
struct GiveWay {
    is_done: bool,
}

impl<A: Actor> ActorFuture<A> for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut A, _: &mut A::Context, task: &mut TaskContext<'_>) -> Poll<()> {
        if self.is_done {
            return Poll::Ready(());
        }
        self.is_done = true;
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
