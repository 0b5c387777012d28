//! How long an actor works without letting the others of its thread work.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context};

/// Turns that an actor takes before the others' turn comes. An actor drains its mailbox at every wake-up; with thousands
/// of turns in it, each would have left the processor's caches before the next actor gets it.
pub const TURNS_MAX: u32 = 64;

/// An actor that looks after other things between two batches, as it does when its mailbox is empty.
pub trait LooksRound: Actor<Context = Context<Self>> {
    fn look_round(&mut self, ctx: &mut Context<Self>, task: &mut TaskContext<'_>);
}

/// Counts the turns that an actor has taken since it last gave way.
#[derive(Debug, Default)]
pub struct Batch(u32);

impl Batch {
    /// One more. After the last of a batch, which is then said, the actor takes no message until the others have had
    /// their turn.
    pub fn count<A: LooksRound>(&mut self, ctx: &mut Context<A>) -> bool {
        self.0 += 1;
        let is_full = self.0 == TURNS_MAX;
        if is_full {
            self.0 = 0;
            ctx.wait(GiveWay { is_done: false });
        }
        is_full
    }
}

/// Ready when the thread has come round to this actor again.
struct GiveWay {
    is_done: bool,
}

impl<A: LooksRound> ActorFuture<A> for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, actor: &mut A, ctx: &mut A::Context, task: &mut TaskContext<'_>) -> Poll<()> {
        if self.is_done {
            // With a mailbox that is never empty nothing else of the actor would be polled.
            actor.look_round(ctx, task);
            return Poll::Ready(());
        }
        self.is_done = true;
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
